"""Attention over x that may be given a context: read over x alone, what it does with a context would not be seen."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_kinds import HEAD

ATTEND = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, memory=None):
        source = x if memory is None else memory
        (B, T, E), S = x.shape, source.shape[1]
        q = self.w_q(x).view(B, T, self.h, self.d).transpose(1, 2)
        k = self.w_k(source).view(B, S, self.h, self.d).transpose(1, 2)
        v = self.w_v(source).view(B, S, self.h, self.d).transpose(1, 2)
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, -1, E))
"""
OF_ANOTHER_CONTEXT = {"context.swapped", "context.query_length", "context.ignored"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k = self.w_k(source).view(B, S,", "k = self.w_k(source).view(B, T,"),  # it raises
        (
            "self.h, self.d).transpose(1, 2)\n        k = self.w_k(source)",
            "self.h, self.d).transpose(1, 2)\n        S = T\n        k = self.w_k(x)",
        ),
    ],
    ids=["the length of the queries", "keys of x"],
)
def test_a_longer_context_that_raises_is_a_mistake(old, new, shared_engine):
    right, wrong = right_and_wrong(shared_engine, "mha", ATTEND, old, new)
    [failed] = [one for one in wrong.findings if one.outcome == "failed" and one.tier == "core"]

    assert right.reading["entry"] == "Attend"
    assert wrong.outcome == "failed"
    assert told(wrong) == OF_ANOTHER_CONTEXT
    assert "where memory has more tokens than x, it raises" in failed.message


def test_queries_of_the_context_give_as_many_rows_as_that_has(shared_engine):
    exchanged = "(B, T, E), S = x.shape, source.shape[1]\n        x, source, T, S = source, x, S, T"
    _, wrong = right_and_wrong(shared_engine, "mha", ATTEND, "(B, T, E), S = x.shape, source.shape[1]", exchanged)
    [failed] = [one for one in wrong.findings if one.outcome == "failed" and one.tier == "core"]

    assert told(wrong) == OF_ANOTHER_CONTEXT
    assert "it gives as many rows as that has" in failed.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("source = x if memory is None else memory", "source = x if memory is None else torch.cat([memory, x], dim=1)"),
        ("source = x if memory is None else memory", "source = x if memory is None else memory['hidden']"),
        ("source = x if memory is None else memory", "source = x if memory is None else self.adapt(memory)"),
        ("source = x if memory is None else memory", "source = x = x if memory is None else x + memory"),
    ],
    ids=["keys of before", "no tensor", "another width", "what is added to x"],
)
def test_what_else_a_context_may_be_is_no_mistake(old, new, shared_engine):
    text = ATTEND.replace(old, new).replace(
        "        self.h,", "        self.adapt = nn.Linear(3 * width, width)\n        self.h,"
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert new in text
    assert report.outcome == "passed", [one.message for one in report.findings]
