"""Heads of which each is as wide as x, in one layer or in one for each: the contract's heads share that width."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD

ONE_LAYER = """
class Wide(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width * n_heads) for _ in range(3))
        self.together = nn.Linear(n_heads * width, width)

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (one(x).view(b, t, self.n_heads, e).transpose(1, 2) for one in (self.to_q, self.to_k, self.to_v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / e**0.5, dim=-1)
        return self.together((weights @ v).transpose(1, 2).reshape(b, t, -1))
"""
ONE_FOR_EACH = """
class OneHead(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        weights = torch.softmax(self.W_q(x) @ self.W_k(x).mT / x.shape[-1] ** 0.5, dim=-1)
        return weights @ self.W_v(x)


class SeveralHeads(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.heads = nn.ModuleList([OneHead(width) for _ in range(n_heads)])
        self.combine = nn.Linear(width * n_heads, width)

    def forward(self, x):
        return self.combine(torch.cat([head(x) for head in self.heads], dim=-1))
"""
WAYS = {"Wide": ONE_LAYER, "SeveralHeads": ONE_FOR_EACH}


@pytest.mark.parametrize("name", WAYS)
def test_heads_as_wide_as_x_are_read_as_they_are(name, shared_engine):
    report = shared_engine.grade("mha", (HEAD + WAYS[name]).encode(), attempt="mine.py", reads=True)
    typed_back = shared_engine.grade(
        "mha",
        (HEAD + WAYS[name]).encode(),
        attempt="mine.py",
        reads=True,
        flags=tuple(report.reading["flags"]),
    )

    assert (report.outcome, report.reading["entry"]) == ("passed", name)
    assert "heads wider than the kata's" in report.reading["departures"]
    assert typed_back.reading["flags"] == report.reading["flags"]
    assert typed_back.outcome == "passed"


@pytest.mark.parametrize(
    ("name", "old", "new", "mistake"),
    [
        ("Wide", ".view(b, t, self.n_heads, e).transpose(1, 2)", ".view(b, self.n_heads, t, e)", "split.no_transpose"),
        ("Wide", ".transpose(1, 2).reshape(b, t, -1)", ".reshape(b, t, -1)", "merge.no_transpose"),
        ("Wide", "dim=-1", "dim=-2", "softmax.query_axis"),
        ("Wide", "(self.to_q, self.to_k, self.to_v)", "(self.to_q, self.to_k, self.to_k)", "project.key_for_value"),
        ("Wide", "e**0.5", "(e // self.n_heads) ** 0.5", None),
        ("Wide", " / e**0.5", "", "scale.missing"),
        ("Wide", "/ e**0.5", "/ e", "scale.no_sqrt"),
        ("SeveralHeads", "/ x.shape[-1] ** 0.5, dim=-1", "/ x.shape[-1] ** 0.5, dim=1", "softmax.query_axis"),
        ("SeveralHeads", "weights @ self.W_v(x)", "weights @ self.W_k(x)", "project.key_for_value"),
        ("SeveralHeads", " / x.shape[-1] ** 0.5", "", "scale.missing"),
    ],
)
def test_no_mistake_in_them_passes(name, old, new, mistake, shared_engine):
    """A scale by the width of narrower heads is no known mistake in them: it has no name, and so no verdict."""
    assert WAYS[name].count(old) == 1
    source = HEAD + WAYS[name].replace(old, new)
    report = shared_engine.grade("mha", source.encode(), attempt="mine.py", reads=True)

    assert report.outcome == ("failed" if mistake else "ungraded")
    assert mistake is None or mistake in [one.id for found in report.diagnosis for one in found.mistakes]


FIXED = """
class Fixed(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.heads, inner = n_heads, 64 * n_heads
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.to_qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-2, -1) * 64**-0.5, dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))
"""
BY_HEAD = (
    FIXED.replace("64 * n_heads", "dim * n_heads")
    .replace(
        "(one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.to_qkv(x).chunk(3, dim=-1))",
        "self.to_qkv(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, dim=-1)",
    )
    .replace("64**-0.5", "q.shape[-1] ** -0.5")
)


SCALES = {FIXED: "64**-0.5", BY_HEAD: "q.shape[-1] ** -0.5"}


@pytest.mark.parametrize("text", SCALES, ids=["a_number", "by_head"])
@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("", "", None),
        (".transpose(1, 2).flatten(2))", ".reshape(x.shape[0], x.shape[1], -1))", "merge.no_transpose"),
        ("dim=-1)\n        return", "dim=-2)\n        return", "softmax.query_axis"),
        ("SCALE", "1", "scale.missing"),
        ("SCALE", "q.shape[-1] ** -1", "scale.no_sqrt"),
    ],
)
def test_wide_heads_of_one_layer_are_read(text, old, new, mistake, shared_engine):
    old = old.replace("SCALE", SCALES[text])
    assert old in text
    report = graded(text.replace(old, new), shared_engine)

    assert report.outcome == ("failed" if mistake else "passed"), report.ungraded_because
    assert [one.id for found in report.diagnosis for one in found.mistakes] == [mistake] * bool(mistake)


def test_heads_of_twice_the_width_are_read(shared_engine):
    twice = FIXED.replace("64 * n_heads", "2 * dim").replace("64**-0.5", "q.shape[-1] ** -0.5")

    assert graded(twice, shared_engine).outcome == "passed"


def test_a_width_that_is_a_number_is_typed_back(shared_engine):
    by_width = FIXED.replace("64**-0.5", "x.shape[-1] ** -0.5")
    report = graded(by_width, shared_engine)
    typed_back = graded(by_width, shared_engine, tuple(report.reading["flags"]))

    assert "head_width=64" in report.reading["flags"]
    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["scale.embed_dim"]
    assert typed_back.diagnosis == report.diagnosis


def graded(text, engine, flags=()):
    return engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)


def test_a_width_by_the_name_of_keys_is_that_of_x(shared_engine):
    """As in a well-known lesson: k is the width, and each head is as wide."""
    named = ONE_LAYER.replace("width, n_heads", "k, heads").replace("width", "k").replace("n_heads", "heads")
    report = graded(named, shared_engine)

    assert report.outcome == "passed"
    assert "heads wider than the kata's" in report.reading["departures"]


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("W_v(x)", "W_v(x)", None),
        ("dim=-1)\n", "dim=1)\n", "softmax.query_axis"),
        (" / x.shape[-1] ** 0.5", "", "scale.missing"),
    ],
)
def test_a_width_by_the_name_of_one_of_a_head_may_be_that_of_x(old, new, mistake, shared_engine):
    """h_dim: each head is given the whole of x, so it projects more than its own columns."""
    named = ONE_FOR_EACH.replace("width", "h_dim")
    assert old in named
    report = graded(named.replace(old, new), shared_engine)

    assert report.outcome == ("failed" if mistake else "passed"), report.ungraded_because
    assert [one.id for found in report.diagnosis for one in found.mistakes] == [mistake] * bool(mistake)


def test_heads_that_are_given_their_own_columns_alone_are_still_named(shared_engine):
    parts = ONE_FOR_EACH.replace("width * n_heads, width", "width * n_heads, width * n_heads").replace("width", "h_dim")
    parts = parts.replace(
        "[head(x) for head in self.heads]", "[head(a) for head, a in zip(self.heads, x.chunk(len(self.heads), -1))]"
    )
    report = graded(parts, shared_engine)

    assert "project.slices" in [one.id for found in report.diagnosis for one in found.mistakes]
