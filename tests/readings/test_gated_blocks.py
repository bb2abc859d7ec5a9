"""Blocks as in Llama: RMSNorm, an mlp with a gate, and rotary positions, which are left out."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report

BLOCK = """
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Rope(nn.Module):
    def __init__(self, theta: float, dim: int, length: int):
        super().__init__()
        angles = torch.outer(torch.arange(length).float(), theta ** (-torch.arange(0, dim, 2) / dim))
        self.register_buffer("cos", angles.cos().repeat(1, 2))
        self.register_buffer("sin", angles.sin().repeat(1, 2))

    def forward(self, x):
        one, two = x.chunk(2, dim=-1)
        T = x.shape[-2]
        return x * self.cos[:T] + torch.cat([-two, one], dim=-1) * self.sin[:T]


class Attention(nn.Module):
    def __init__(self, dim, n_heads, theta, length):
        super().__init__()
        self.h, self.d = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.rope = Rope(theta, self.d, length)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        scores = self.rope(q) @ self.rope(k).transpose(-2, -1) / math.sqrt(self.d)
        scores = scores + torch.full((T, T), float("-inf"), device=x.device).triu(1)
        return self.wo((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1, self.w2 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, dim, n_heads, hidden_dim, theta, length):
        super().__init__()
        self.attention = Attention(dim, n_heads, theta, length)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.attention_norm, self.ffn_norm = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))
"""
GATED = "F.silu(self.w1(x)) * self.w3(x)"
OWN_WIDTH = (
    (
        "def __init__(self, dim, hidden_dim):\n",
        "def __init__(self, dim, of=64):\n        hidden_dim = of * (-(-8 * dim // 3) // of + 1)\n",
    ),
    ("FeedForward(dim, hidden_dim)", "FeedForward(dim)"),
    ("n_heads, hidden_dim, theta", "n_heads, theta"),
)


def graded(engine: Engine, *edits: tuple[str, str], flags: tuple[str, ...] = ()) -> Report:
    text = BLOCK
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return engine.grade("transformer_block", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ((), "SwiGLU"),
        (((GATED, "F.gelu(self.w1(x)) * self.w3(x)"),), "GEGLU"),
        (((GATED, "F.relu(self.w3(x)) * self.w1(x)"),), "ReGLU"),
        (((GATED, "torch.sigmoid(self.w1(x)) * self.w3(x)"),), "GLU, by a sigmoid"),
        (((GATED, "self.w1(x) * torch.sigmoid(self.w1(x)) * self.w3(x)"),), "SwiGLU"),
        (OWN_WIDTH, "SwiGLU"),
        ((("eps=1e-6", "eps=1e-5"),), "eps 1e-5"),
        ((("RMSNorm(dim), RMSNorm(dim)", "nn.RMSNorm(dim), nn.RMSNorm(dim)"),), "eps of the precision"),
        ((("RMSNorm(dim), RMSNorm(dim)", "nn.LayerNorm(dim), nn.LayerNorm(dim)"),), "SwiGLU"),
    ],
    ids=["swiglu", "geglu", "reglu", "glu", "swish by hand", "own width", "eps", "of torch", "LayerNorm"],
)
def test_a_gate_and_its_norms_are_read(edits, said, shared_engine):
    report = graded(shared_engine, *edits)
    typed_back = graded(shared_engine, *edits, flags=tuple(report.reading["flags"]))

    assert report.outcome == typed_back.outcome == "passed", report.ungraded_because
    assert any(said in one for one in report.reading["departures"])
    assert any(one.startswith("mlp_gate=feed_forward.w3.weight") for one in report.reading["flags"])


@pytest.mark.parametrize("more", [(), OWN_WIDTH], ids=["given width", "own width"])
@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("/ math.sqrt(self.d)", "", "scale.missing"),
        ("F.softmax(scores, dim=-1)", "F.softmax(scores, dim=-2)", "softmax.query_axis"),
        (".triu(1)", ".triu(2)", "mask.shifted"),
        ("return h + self", "return x + self", "block.first_branch_lost"),
        ("self.ffn_norm(h)", "self.attention_norm(h)", "block.norm_shared"),
        ("self.attention(self.attention_norm(x))", "self.attention(x)", "block.norm_missing"),
        (".transpose(1, 2).reshape(B, T, E)", ".reshape(B, T, E)", "merge.no_transpose"),
        ("[-two, one]", "[two, one]", "rope.sign_lost"),
    ],
)
def test_its_mistakes_are_named(old, new, mistake, more, shared_engine):
    report = graded(shared_engine, (old, new), *more)

    assert report.outcome == "failed"
    assert mistake in told(report)


@pytest.mark.parametrize(
    "mlp", ["F.silu(self.w1(x) * self.w3(x))", "F.silu(self.w1(x)) + self.w3(x)", "torch.cos(self.w1(x)) * self.w3(x)"]
)
def test_what_no_gate_that_is_known_does_is_no_verdict(mlp, shared_engine):
    """Which function a gate has is its author's choice."""
    report = graded(shared_engine, (GATED, mlp))

    assert report.outcome == "ungraded"
    assert "The output is the first that is wrong" in report.ungraded_because
