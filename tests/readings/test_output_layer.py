"""Several heads that are joined and go through no layer: who adds the result as it is has no output layer anywhere."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.readings.test_kinds import HEAD

from attn_kata.readings.source import syntax, usage

HEADS = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2)
"""
USER = """

class Block(nn.Module):
    def __init__(self, width, n_heads, more):
        super().__init__()
        self.attend = Attend(width, n_heads)
        self.norm, self.drop, self.dense = nn.LayerNorm(width), nn.Dropout(0.0), nn.Linear(width, width)
        self.names = open(more).read()

    def forward(self, x):
        BODY
"""
ADDED = (
    "return x + self.attend(self.norm(x))",
    "x = x + self.drop(self.attend(x))\n        return self.dense(x)",
    "found = self.attend(x)\n        found = self.drop(found)\n        return self.norm(found + x)",
    "x += self.attend(x)\n        return x",
    "found = self.attend(x)\n        return F.dropout(self.norm(found), 0.1) + x",
    "found, weights = self.attend(x)\n        return found + x",
)
MORE = (
    "return x + self.dense(self.attend(x))",
    "found = self.attend(x)\n        found = self.dense(found)\n        return x + found",
    "return self.attend(x)",
    "found = self.attend(x)\n        return self.merge(x, found)",
    "found = self.attend(x)\n        return x + found, self.dense(found)",
    "return torch.cat([x, self.attend(x)], dim=-1)",
    "return x * self.attend(x)",
    "return x",
)


def adds(body: str) -> str:
    found = syntax.of_source((HEADS + USER.replace("BODY", body)).encode())
    definition = found.find("Attend")
    assert definition is not None
    return usage.adds_it_as_it_is(definition, found)


@pytest.mark.parametrize("body", ADDED)
def test_what_adds_the_result_as_it_is_is_told(body: str) -> None:
    assert adds(body) == "Block"


@pytest.mark.parametrize("body", MORE)
def test_what_may_have_the_layer_is_not(body: str) -> None:
    assert adds(body) == ""


def test_every_user_must_add_it_as_it_is() -> None:
    other = USER.replace("class Block", "class Other").replace("BODY", MORE[0])
    found = syntax.of_source((HEADS + USER.replace("BODY", ADDED[0]) + other).encode())
    definition = found.find("Attend")

    assert definition is not None
    assert usage.adds_it_as_it_is(definition, found) == ""


@pytest.fixture
def graded(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTN_KATA_HOME", str(tmp_path / "home"))

    def graded(text: str, *options: str) -> tuple[dict, str]:
        path = tmp_path / "mine.py"
        path.write_text(HEAD + text, "utf-8")
        command = [sys.executable, "-m", "attn_kata", "grade", str(path), "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        return json.loads(done.stdout), done.stderr

    return graded


def named(report: dict) -> set[str]:
    return {mistake["id"] for one in report["diagnosis"] for mistake in one["mistakes"]}


def test_heads_that_are_added_as_they_are_fail(graded) -> None:
    report, said = graded(HEADS + USER.replace("BODY", ADDED[0]))

    assert (report["outcome"], named(report)) == ("failed", {"output.missing"})
    assert "no_output=yes" in report["reading"]["flags"]
    assert not any("output.missing" in note for note in report["reading"]["notes"])
    assert "Attend is right up to its output layer. Block adds the result, with no layer between:" in said


def test_the_flag_that_is_shown_gives_the_same(graded) -> None:
    text = HEADS + USER.replace("BODY", ADDED[0])
    first, _ = graded(text)
    again, _ = graded(text, "--kata", "mha", *(part for flag in first["reading"]["flags"] for part in ("--read", flag)))

    assert (again["outcome"], named(again)) == ("failed", {"output.missing"})
    assert again["reading"] == first["reading"]


IDENTITY = HEADS.replace(
    "return (weights @ v).transpose(1, 2).flatten(2)", "return self.to_out((weights @ v).transpose(1, 2).flatten(2))"
)
IDENTITY = IDENTITY.replace("        self.query,", "        self.to_out = nn.Identity()\n        self.query,")


def test_heads_that_go_through_identity_fail(graded) -> None:
    report, said = graded(IDENTITY)

    assert (report["outcome"], named(report)) == ("failed", {"output.missing"})
    assert "Attend is right up to its output layer. Its to_out is nn.Identity(), which does nothing:" in said


@pytest.mark.parametrize(
    "text",
    [
        HEADS + USER.replace("BODY", MORE[0]),
        HEADS,
        IDENTITY.replace("nn.Identity()", "nn.Identity() if width == n_heads else nn.Identity()"),
        IDENTITY + USER.replace("BODY", MORE[0]),
    ],
    ids=["a layer elsewhere", "nobody uses it", "a choice", "a layer in a user"],
)
def test_heads_that_may_go_through_a_layer_elsewhere_pass_with_a_note(graded, text: str) -> None:
    report, _ = graded(text)

    assert report["outcome"] == "passed", report["ungraded_because"]
    assert any("output.missing" in note for note in report["reading"]["notes"])


ONE_HEAD = """
class Attend(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
"""


def test_of_one_head_nothing_is_to_be_joined(graded) -> None:
    user = USER.replace("BODY", ADDED[0]).replace("Attend(width, n_heads)", "Attend(width)")
    report, _ = graded(ONE_HEAD + user, "--kata", "mha")

    assert report["outcome"] == "passed", report["ungraded_because"]


BLOCK = """
class Block(nn.Module):
    def __init__(self, width, n_heads, hidden):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def attend(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2)

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))
"""


def test_a_block_that_joins_its_heads_without_a_layer_fails(graded) -> None:
    report, _ = graded(BLOCK)

    assert (report["kata"], report["outcome"], named(report)) == ("transformer_block", "failed", {"output.missing"})


def test_heads_that_are_not_merged_either_are_no_verdict_and_said(shared_engine):
    text = HEADS.replace("(weights @ v).transpose(1, 2).flatten(2)", "weights @ v")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert "flatten(2)" not in text
    assert report.outcome == "ungraded"
    assert "its heads are not merged, and it has no output layer. Merge the heads, or" in report.ungraded_because
