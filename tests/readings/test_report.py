"""The report of code that is read, through the whole path: it stays the same where its reading is typed back."""

from __future__ import annotations

import re
from typing import Any

import pytest

from attn_kata.readings import advice
from attn_kata.report.model import Report
from attn_kata.specimens import Edit, apply

from . import adapter
from .test_interfaces import ATTEND
from .test_kinds import HEAD
from .test_search import KATAS

PIECES, MISTAKES = adapter.table("pieces"), adapter.table("mistakes")


# A wrong piece where the search could end elsewhere: for a mask, and among several definitions.
WRONG = {"sdpa": "sdpa_attention_and_weights__softmax_query_axis", "mha": "textbook_w_matrices__scale_missing"}


def of_kata(slug: str) -> tuple[str, str]:
    """A piece of the kata: its name, and the source. A right one without dropout, where there is one, or the wrong one."""
    if slug in WRONG:
        row = MISTAKES[WRONG[slug]]
        edits = [Edit(old=edit["old"], new=edit["new"], place=WRONG[slug]) for edit in row["edit"]]
        return WRONG[slug], apply(adapter.source(row["piece"]), edits)
    rows = {name: row for name, row in PIECES.items() if row["kata"] == slug}
    without = [name for name, row in rows.items() if re.search(r"\bp\b", row.get("build", "")) is None]
    name = [*without, *rows][0]
    return name, adapter.source(name)


def compared(report: Report) -> dict[str, Any]:
    """The JSON report without times, and without the questions of its reading: what is typed back answers them."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(one) for key, one in value.items() if key != "seconds"}
        return [timeless(one) for one in value] if isinstance(value, list) else value

    body: dict[str, Any] = timeless(report.to_dict())
    asks = ("No name and no comment says what True", "Another reading explains")
    notes = [one for one in body["reading"]["notes"] if not one.startswith(asks)]
    body["reading"] |= {"settled": True, "ties": [], "notes": notes}
    return body


def test_a_right_piece_of_every_kata_passes_and_a_reading_typed_back_gives_the_same_report(shared_engine):
    """All katas once, then all again: the engine gets ready for another grading of the kata that it just graded."""
    pieces = {slug: of_kata(slug) for slug in KATAS}

    def graded(slug: str, **more: Any) -> Report:
        return shared_engine.grade(slug, pieces[slug][1].encode(), attempt="piece.py", reads=True, **more)

    reports = {slug: graded(slug) for slug in KATAS}
    unread = {pieces[slug][0]: one.ungraded_because for slug, one in reports.items() if one.reading is None}
    assert unread == {}
    again = {slug: graded(slug, flags=tuple((one.reading or {})["flags"])) for slug, one in reports.items()}

    assert {slug for slug, one in reports.items() if not one.passed} == set(WRONG)
    for slug, one in reports.items():
        assert compared(again[slug]) == compared(one), pieces[slug][0]


LOADED = """
import math
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))
        BUILD

    def forward(self, x):
        CALL
        b, t, e = x.shape
        q, k, v = (w(x).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, e))
"""


@pytest.mark.parametrize(
    ("build", "call", "tried", "to_do"),
    [
        (
            "self.load_state_dict(torch.load('weights.pt'))",
            "",
            "heads=H) raises FileNotFoundError",
            "take out what loads",
        ),
        ("", "return", "returned None", "Return the result from the call"),
        ("self.table = torch.zeros(100_000, 100_000)", "", "it ran out of memory", "--read build=NAME=VALUE"),
        (
            "self.keep = self.fill\n\n    def fill(self):\n        self.cache = []",
            "x = x + self.cache[0]",
            "has no attribute 'cache', line 17 in forward",
            "Say how it is called with --read call=",
        ),
    ],
    ids=["checkpoint", "nothing", "memory", "state"],
)
def test_what_cannot_be_built_or_called_is_said_with_what_to_do(shared_engine, build, call, tried, to_do):
    source = LOADED.replace("BUILD", build).replace("CALL", call)
    report = shared_engine.grade("mha", source.encode(), attempt="theirs.py", reads=True)

    assert report.outcome == "ungraded"
    assert tried in report.ungraded_because
    assert to_do in report.ungraded_because


def test_what_raises_however_it_is_read_is_a_mistake_with_its_line(shared_engine):
    source = LOADED.replace("BUILD", "").replace("CALL", "x = self.drop_out(x)")
    report = shared_engine.grade("mha", source.encode(), attempt="theirs.py", reads=True)

    assert report.outcome == "failed"
    line = source.splitlines().index("        x = self.drop_out(x)") + 1
    failed = [one.message for one in report.findings if one.outcome == "failed"]
    assert f"'Attention' object has no attribute 'drop_out', line {line} in forward" in failed[0]


def test_an_output_that_value_does_not_reach_says_nothing_of_the_dropout(shared_engine):
    source = adapter.source("qkv_out_only").replace("F.linear(value, w_v, b_v)", "F.linear(key, w_v, b_v)")
    report = shared_engine.grade("qkv_attention", source.encode(), attempt="theirs.py", reads=True)

    assert [one.id for each in report.diagnosis for one in each.mistakes] == ["source.value_from_key"]
    assert not any("dropout" in note for note in report.reading["notes"]), report.reading["notes"]


@pytest.mark.parametrize(
    ("tried", "to_do"),
    [
        ("A(d=E) raises AssertionError: Torch not compiled with CUDA enabled", "no GPU"),
        ("A(d=E) raises URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no network"),
        ("A(d=E) raises TypeError: __init__() missing 1 required positional argument: 'rank'", "--read build=NAME=E"),
        ("A: its parameters do not say which are q, k and v (a.weight (8, 8))", "--read q=NAME"),
        (
            "A: no known mistake explains its numbers, and it may be built with wrong sizes: "
            "its names do not say how it is to be built",
            "build=",
        ),
        (
            "A(d=E): every call that was tried with a mask raises: The size of tensor a (2) must match",
            "--read mask=none",
        ),
        ("A: every call that was tried raises: name 'np' is not defined, line 7 in forward", "into the file"),
        ("nothing in the file looks like an attention that this kata could grade", "--class NAME"),
    ],
)
def test_what_to_do_fits_what_was_tried(tried, to_do):
    assert to_do in advice.on(tried)


OF_A_WIDTH = """
class DotProduct(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.root = d_model**0.5

    def forward(self, q, k, v):
        return (q @ k.transpose(-2, -1) / self.root).softmax(-1) @ v
"""


def test_what_is_right_only_as_a_part_is_said_with_the_mistake_that_it_may_be_in_a_whole(shared_engine):
    of_heads = ATTEND.replace(
        "self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))", "(weights @ v).transpose(1, 2).flatten(2)"
    ).replace("self.w_v, self.w_o = nn.Linear(width, width), nn.Linear", "self.w_v = nn.Linear")
    reports = [
        shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)
        for slug, text in (
            ("mha", of_heads),
            ("sdpa", OF_A_WIDTH),
            ("mha", ATTEND),
            ("sdpa", OF_A_WIDTH.replace("d_model", "d_k")),
        )
    ]
    ids = {"output.missing", "scale.embed_dim"}
    said = [ids & set(re.findall(r"\w+\.\w+", " ".join(one.reading["notes"]))) for one in reports]

    assert [one.outcome for one in reports] == ["passed"] * 4
    assert said == [{"output.missing"}, {"scale.embed_dim"}, set(), set()]


@pytest.mark.parametrize(
    ("tried", "to_do"),
    [
        (
            "every call that was tried with a mask raises: 'Attend' object has no attribute 'd_model', line 9",
            "--read constants=NAME=E",
        ),
        ("every call that was tried raises: 'Attend' object has no attribute 'cache', line 9", "--read call=NAME=x"),
        ("every call that was tried raises: 'NoneType' object has no attribute 'size', line 9", "--read call=NAME=x"),
        ("Attend has no submodule 'norm' that could be left out", "leave --read bypassed out"),
        ("Attend: wv.weight has the shape (4, 24), where (24, 24) is wanted", "correct the size of this layer"),
    ],
)
def test_what_is_proposed_fits_what_was_raised(tried, to_do):
    assert to_do in advice.on(tried)
