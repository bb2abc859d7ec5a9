"""A sequence that is pooled by weights of its own, tanh(W x + b) · v (Yang et al., 2016): additive, without a query."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference

VECTOR = """
class Pool(nn.Module):
    def __init__(self, hidden_dim, attn_dim):
        super().__init__()
        self.project = nn.Linear(hidden_dim, attn_dim)
        self.context = nn.Parameter(torch.randn(attn_dim))

    def forward(self, x):
        scores = torch.tanh(self.project(x)) @ self.context
        weights = F.softmax(scores, dim=1)
        return torch.einsum("bt,bth->bh", weights, x)
"""
LAYERS = """
class WordAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.attn = nn.Linear(hidden_size, hidden_size)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, rnn_outputs, mask=None):
        scores = self.score(torch.tanh(self.attn(rnn_outputs)))  # (B, T, 1)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(-1) == 0, -1e9)
        weights = torch.softmax(scores, dim=1)
        return (weights * rnn_outputs).sum(dim=1), weights
"""
MATRICES_TIME_FIRST = """
class SentenceAttention(nn.Module):
    def __init__(self, width, units):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(width, units)), nn.Parameter(torch.zeros(units))
        self.context_vector = nn.Parameter(torch.randn(units, 1))

    def forward(self, gru_out):
        \"\"\"gru_out: (seq_len, batch, width)\"\"\"
        scores = torch.tanh(gru_out @ self.weight + self.bias) @ self.context_vector  # (seq_len, batch, 1)
        weights = torch.softmax(scores, dim=0)
        return (weights * gru_out).sum(dim=0)
"""
LENGTHS = """
class AttentivePooling(nn.Module):
    def __init__(self, input_dim, attention_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(input_dim, attention_dim), nn.Tanh(), nn.Linear(attention_dim, 1))

    def forward(self, features, lengths):
        scores = self.net(features).squeeze(-1)
        beyond = torch.arange(features.shape[1], device=features.device)[None] >= lengths[:, None]
        weights = scores.masked_fill(beyond, float("-inf")).softmax(-1)
        return (weights[:, None] @ features)[:, 0]
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "named"),
    [
        (VECTOR, "torch.tanh(self.project(x))", "self.project(x)", {"additive.no_tanh"}),
        (VECTOR, "dim=1)", "dim=0)", {"softmax.head_axis"}),
        (LAYERS, "torch.tanh(self.attn(rnn_outputs))", "self.attn(rnn_outputs)", {"additive.no_tanh"}),
        (LAYERS, "== 0, -1e9", "== 0, 0.0", {"mask.zero_fill"}),
        (MATRICES_TIME_FIRST, "dim=0)\n        return", "dim=1)\n        return", {"softmax.head_axis"}),
        (LENGTHS, '.masked_fill(beyond, float("-inf"))', "", {"mask.lost"}),
        (LENGTHS, "nn.Tanh(), ", "", {"additive.no_tanh"}),
    ],
)
def test_it_is_read_and_hides_no_mistake(text, old, new, named, shared_engine):
    right, wrong = right_and_wrong(shared_engine, "additive_attention", text, old, new)

    assert right.reading is not None
    assert {"what": "q", "value": "none: it takes no query, and the layer of the query counts as 0"} in right.reading[
        "lines"
    ]
    assert wrong.outcome == "failed"
    assert told(wrong) == named


@pytest.mark.parametrize("text", [VECTOR, LAYERS, MATRICES_TIME_FIRST, LENGTHS])
def test_it_is_told_from_other_kinds(text):
    assert inference.kata_of((HEAD + text).encode()) is not None
    assert inference.kata_of((HEAD + text).encode())[0] == "additive_attention"


def test_a_query_is_one_wherever_there_are_two_inputs(shared_engine):
    text = VECTOR.replace("self, x)", "self, x, state)").replace("self.project(x)", "self.project(x + state[:, None])")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.reading is None or not any(
        line["what"] == "q" and "no query" in line["value"] for line in report.reading["lines"]
    )
