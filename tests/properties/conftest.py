"""Specimens as the hidden tests meet an attempt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from attn_kata import catalog, specimens
from attn_kata.properties.handle import Handle, local_handle


@pytest.fixture
def specimen_handle(tmp_path: Path) -> Callable[[str, str], Handle]:
    """`specimen_handle("mha", "wrong/mask_lost")`: a handle on that attempt, run in this process."""

    def handle(slug: str, title: str) -> Handle:
        file = tmp_path / f"{title.replace('/', '_')}.py"
        file.write_text(specimens.find(catalog.find(slug).folder, title).source(), "utf-8")
        return local_handle(file)

    return handle
