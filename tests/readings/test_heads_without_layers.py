"""Classes that split and join heads of what a caller has projected, and have no layer themselves."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference

SPLITS = """
class JoinedHeads(nn.Module):
    def __init__(self, n_heads, drop=0.1):
        super().__init__()
        self.h = n_heads
        self.drop = nn.Dropout(drop)

    def apart(self, t):
        b, n, width = t.shape
        return t.view(b, n, self.h, width // self.h).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self.apart, (query, key, value))
        attention = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            attention = attention.masked_fill(mask == 0, float("-inf"))
        attention = self.drop(attention.softmax(-1))
        together = (attention @ v).transpose(1, 2)
        return together.contiguous().view(query.shape[0], -1, query.shape[-1])
"""
OF_HEADS = """
class ScaledDotProduct(nn.Module):
    def __init__(self, d_k, n_heads):
        super().__init__()
        self.d_k, self.n_heads = d_k, n_heads

    def forward(self, q, k, v, mask=None):
        # q, k, v: (batch, heads, tokens, d_k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(-1) @ v
"""
MISTAKES = {
    "split.no_transpose": (
        "view(b, n, self.h, width // self.h).transpose(1, 2)",
        "view(b, self.h, n, width // self.h)",
    ),
    "merge.no_transpose": ("(attention @ v).transpose(1, 2)", "attention @ v"),
    "scale.embed_dim": ("math.sqrt(q.size(-1))", "math.sqrt(query.size(-1))"),
    "mask.inverted": ("mask == 0", "mask == 1"),
}


@pytest.mark.parametrize("name", [None, *MISTAKES])
def test_the_heads_are_graded_and_no_mistake_is_hidden(name, shared_engine):
    source = (HEAD + (SPLITS if name is None else SPLITS.replace(*MISTAKES[name]))).encode()
    told = inference.kata_of(source)
    report = shared_engine.grade("qkv_attention", source, attempt="mine.py", reads=True, flags=("mask=keep",))
    flags = tuple(report.reading["flags"])
    typed_back = shared_engine.grade("qkv_attention", source, attempt="mine.py", reads=True, flags=flags)

    assert told is not None
    assert told[0] == "qkv_attention"
    assert report.outcome == ("passed" if name is None else "failed"), report.ungraded_because
    assert [one.id for found in report.diagnosis for one in found.mistakes] == ([] if name is None else [name])
    assert "no layer of the queries" in report.reading["departures"]
    assert (typed_back.outcome, typed_back.reading["flags"]) == (report.outcome, list(flags))


STYLES = {
    "in_several_lines": (
        "t.view(b, n, self.h, width // self.h)",
        "t.view(\n            b, n, self.h, width // self.h\n        )",
    ),
    "of_what_is_contiguous": ("t.view(b", "t.contiguous().view(b"),
    "by_a_shape": (
        "return t.view(b, n, self.h, width // self.h)",
        "new_shape = (b, n, self.h, width // self.h)\n        return t.view(*new_shape)",
    ),
}


@pytest.mark.parametrize("name", STYLES)
def test_a_split_in_any_style_is_one(name):
    assert SPLITS.count(STYLES[name][0]) == 1
    assert [slug for slug, _, _ in inference.katas_of((HEAD + SPLITS.replace(*STYLES[name])).encode())] == [
        "qkv_attention"
    ]


VIEWS = {
    "of_nothing": ("", ""),
    "of_a_mask": (
        "if mask is not None:\n",
        "if mask is not None:\n            mask = mask.view(-1, 1, *mask.shape[-2:])\n",
    ),
    "of_scores": (
        "mask == 0, -1e9)\n",
        "mask == 0, -1e9).view(-1, self.n_heads, *scores.shape[-2:]).view_as(scores)\n",
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_gets_heads_and_splits_nothing_is_a_product_of_q_k_and_v(name):
    text = OF_HEADS.replace(*VIEWS[name])
    told = inference.kata_of((HEAD + text).encode())

    assert ("view(" in text) == (name != "of_nothing")
    assert told is not None
    assert told[0] == "sdpa"
