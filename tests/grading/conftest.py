"""An engine for the tests of this folder that look at whole gradings."""

from __future__ import annotations

import pytest

from attn_kata.engine.client import Engine


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    return shared_engine
