"""Code by other names with two mistakes: both are named, and no other definition or reading hides them."""

from __future__ import annotations

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

WIDE = """
class TranslatorAttend(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B, Tq, E = query.shape
        Tk = key.shape[1]
        q = self.w_q(query).view(B, Tq, self.h, self.d).transpose(1, 2)
        k = self.w_k(key).view(B, Tk, self.h, self.d).transpose(1, 2)
        v = self.w_v(value).view(B, Tk, self.h, self.d).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1), -1e18)
        return self.w_o((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, Tq, E))
"""
SPLIT_AS_IT_LIES = (
    (".view(B, Tq, self.h, self.d).transpose(1, 2)", ".view(B, self.h, Tq, self.d)"),
    (".view(B, Tk, self.h, self.d).transpose(1, 2)", ".view(B, self.h, Tk, self.d)"),
)
NO_MASK = (
    (", mask=None", ""),
    ("        if mask is not None:\n            scores = scores.masked_fill(mask.unsqueeze(1), -1e18)\n", ""),
)
# Its words speak of what is causal, and it is not: the second of two readings explains it.
SPEAKS_OF_CAUSAL = ATTEND.replace(
    '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
    "        # not causal: the decoder has its causal triangle, torch.tril, elsewhere\n",
).replace(", mask=None", "")
TWO = {
    "a_mask_beside_a_split": (
        "qkv_attention",
        WIDE,
        (*SPLIT_AS_IT_LIES, ("-1e18", "0.0")),
        {"mask.zero_fill", "split.no_transpose"},
    ),
    "as_many_keys_as_queries": (
        "qkv_attention",
        WIDE.replace("TranslatorAttend", "TranslatorSelfAttend"),
        (
            *NO_MASK,
            (".view(B, Tk,", ".view(B, Tq,"),
            (" / math.sqrt(self.d)", ""),
            (".transpose(1, 2).reshape(B, Tq, E)", ".reshape(B, Tq, E)"),
        ),
        {"scale.missing", "merge.no_transpose"},
    ),
    "words_of_another_part": (
        "mha",
        SPEAKS_OF_CAUSAL,
        (("dim=-1", "dim=-2"), ("w(x).view(B, T, self.h, -1).transpose(1, 2)", "w(x).view(B, self.h, T, -1)")),
        {"softmax.query_axis", "split.no_transpose"},
    ),
}


def told(report):
    return {mistake.id for one in report.diagnosis for mistake in one.mistakes}


@pytest.mark.parametrize("name", TWO)
def test_two_mistakes_are_both_named(name, shared_engine):
    slug, text, edits, named = TWO[name]
    wrong = text
    for old, new in edits:
        assert old in wrong
        wrong = wrong.replace(old, new)
    right, told_of = (
        shared_engine.grade(slug, (HEAD + each).encode(), attempt="mine.py", reads=True) for each in (text, wrong)
    )

    assert right.outcome == "passed", right.ungraded_because
    assert told(told_of) == named


def test_a_mistake_that_the_kata_with_a_mask_does_not_know_is_named_beside_one_of_the_mask(shared_engine):
    text = (
        "\n\nclass Attend(nn.Module):\n    def forward(self, query, key, value, mask=None):\n"
        "        scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(query.shape[-1])\n"
        "        if mask is not None:\n            scores = scores.masked_fill(mask == 0, 0.0)\n"
        "        return torch.bmm(F.softmax(scores), value)\n"
    )
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert "softmax.no_dim" in told(report)


def test_a_right_definition_does_not_hide_two_mistakes_of_the_likelier_one(shared_engine):
    heads = ATTEND.replace("SelfAttend", "MultiHeadAttend")
    one_head = ATTEND.replace("SelfAttend", "Attend").replace("(width, n_heads)", "(width)", 1)
    one_head = one_head.replace("def __init__(self, width, n_heads)", "def __init__(self, width)")
    one_head = one_head.replace("n_heads, width // n_heads", "1, width")
    wrong = heads.replace(" / math.sqrt(self.d)", "").replace(
        "w(x).view(B, T, self.h, -1).transpose(1, 2)", "w(x).view(B, self.h, T, -1)"
    )
    right, report = (
        shared_engine.grade("mha", (HEAD + one_head + each).encode(), attempt="mine.py", reads=True)
        for each in (heads, wrong)
    )

    assert (right.outcome, right.reading["entry"]) == ("passed", "MultiHeadAttend")
    assert (report.outcome, report.reading["entry"]) == ("failed", "MultiHeadAttend")
    assert told(report) == {"scale.missing", "split.no_transpose"}


def test_scores_that_a_mask_makes_float32_are_a_convention_as_all_of_float32_is(shared_engine):
    text = ATTEND.replace("scores.masked_fill(mask == 0", "scores.float().masked_fill(mask == 0")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert any("numerics.forced_float32" in note for note in report.reading["notes"])
