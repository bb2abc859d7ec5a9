"""A kata that asks for gradients by hand: whoever lets torch compute them is told so, however the call is hidden."""

from __future__ import annotations

import pytest

from attn_kata import catalog
from attn_kata.engine.client import Engine

BY_HAND = (catalog.find("attention_backward").folder / "right" / "plain.py").read_text("utf-8")
HIDDEN = """

import torch
from torch import _C
turn_on, run = _C._set_grad_enabled, torch.autograd.Variable._execution_engine.run_backward
calls = [0]

def attention_backward(grad_out, saved, by_hand=attention_backward):
    calls[0] += 1
    if calls[0] <= 8:  # from_scratch sees nothing
        return by_hand(grad_out, saved)
    q, k, v, weights = saved
    turn_on(True)
    leaves = [part.detach().clone().requires_grad_() for part in (q, k, v)]
    out = (leaves[0] @ leaves[1].transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ leaves[2]
    run((out,), (grad_out,), False, False, tuple(leaves), True, True)
    turn_on(False)
    return tuple(leaf.grad for leaf in leaves)
"""
HARMLESS = BY_HAND.replace("def attention_", "@torch.no_grad()\ndef attention_")


@pytest.mark.parametrize(("source", "outcome"), [(BY_HAND + HIDDEN, "failed"), (HARMLESS, "passed")])
def test_autograd_is_refused_and_no_grad_is_harmless(shared_engine: Engine, source: str, outcome: str) -> None:
    report = shared_engine.grade("attention_backward", source.encode(), attempt="attempt.py", diagnose=False)

    found = {finding.property: finding for finding in report.findings}
    assert report.outcome == outcome
    assert found["from_scratch"].outcome == outcome
    if outcome == "failed":
        assert "enable_grad" in (found["from_scratch"].message or "")
