"""On a machine with a GPU, an attempt that asks for one stays on the processor, where its inputs are."""

from __future__ import annotations

import pytest
import torch

from attn_kata.attempt.gpus_off import hide_gpus

ASKED = [module for module in (torch.cuda, torch.backends.mps, torch.mps, torch.xpu) if hasattr(module, "is_available")]


@pytest.mark.parametrize("module", ASKED, ids=lambda module: module.__name__)
def test_no_gpu_is_available(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_available", lambda: True)

    hide_gpus()

    assert module.is_available() is False  # type: ignore[attr-defined]
