"""The device property sees tensors that were made before the call, and those that legacy constructors make."""

from __future__ import annotations

import pytest

from attn_kata.engine.client import Engine

ATTEMPT = """
import functools
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("num_heads does not divide embed_dim")
        self.heads, self.d = num_heads, embed_dim // num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))
        self.drop = nn.Dropout(dropout)
        {kept}

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (p(x).view(B, T, self.heads, self.d).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.transpose(-2, -1) / {root}
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return self.o_proj((self.drop(scores.softmax(-1)) @ v).transpose(1, 2).reshape(B, T, E))

ROOTS = torch.arange(64).double().sqrt()[:, None]

@functools.cache
def root(d, device):
    return torch.tensor([d**0.5], device=device)
"""


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    return shared_engine


def device(engine: Engine, kept: str, root: str) -> str:
    source = ATTEMPT.replace("{kept}", kept).replace("{root}", root).encode()
    report = engine.grade("mha", source, attempt="mha.py", properties=("device",), diagnose=False)
    return next(finding.outcome for finding in report.findings if finding.property == "device")


WRONG = {
    "a legacy tensor kept in __init__": ("self.root = torch.sqrt(torch.FloatTensor([self.d]))", "self.root"),
    "a plain tensor kept in __init__": ("self.root = torch.tensor([self.d**0.5])", "self.root"),
    "a legacy tensor made in the call": ("pass", "torch.FloatTensor([self.d**0.5])"),
    "a tensor of the module's file": ("pass", "ROOTS[self.d]"),
}
RIGHT = {
    "a tensor without dimensions": ("self.root = torch.tensor(self.d**0.5)", "self.root"),
    "a buffer": ("self.register_buffer('root', torch.tensor([self.d**0.5]))", "self.root"),
    "a plain tensor, moved by device": ("self.root = torch.tensor([self.d**0.5])", "self.root.to(x.device)"),
    "a plain tensor, moved by x": ("self.root = torch.tensor([self.d**0.5])", "self.root.to(x)"),
    "a legacy tensor, moved": ("pass", "torch.FloatTensor([self.d**0.5]).to(x.device)"),
    "a tensor made from x": ("pass", "x.new_tensor([self.d**0.5])"),
    "a tensor of an earlier call, made on x's device": ("pass", "root(self.d, x.device)"),
}


@pytest.mark.parametrize(("kept", "root"), WRONG.values(), ids=WRONG)
def test_what_would_stay_behind_on_the_default_device_fails(engine: Engine, kept: str, root: str) -> None:
    assert device(engine, kept, root) == "failed"


@pytest.mark.parametrize(("kept", "root"), RIGHT.values(), ids=RIGHT)
def test_what_moves_with_the_inputs_passes(engine: Engine, kept: str, root: str) -> None:
    assert device(engine, kept, root) == "passed"
