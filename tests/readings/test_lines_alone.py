"""Code that cannot be built or called here, and whose lines show a mistake."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report

# What it is built with is known to its owner alone.
REFUSES = """
class Attention(nn.Module):
    def __init__(self, width, heads, table):
        super().__init__()
        assert table["attention"].size == width
        self.width, self.heads = width, heads
        self.size = width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = (self.split(layer(x)) for layer in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.size)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.o((weights @ v).transpose(1, 2).flatten(2))
"""
SET = "        self.size = width // heads\n"


def graded(engine: Engine, text: str, kata: str = "mha") -> Report:
    return engine.grade(kata, (HEAD + text).encode(), attempt="mine.py", reads=True)


def edited(*edits: tuple[str, str]) -> str:
    text = REFUSES
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_right_code_that_refuses_its_sizes_is_ungraded(shared_engine: Engine) -> None:
    report = graded(shared_engine, REFUSES)

    assert report.outcome == "ungraded"
    assert not report.notes


@pytest.mark.parametrize(
    "edits",
    [
        (("math.sqrt(self.size)", "math.sqrt(self.width)"),),
        (("math.sqrt(self.size)", "self.width ** 0.5"),),
        (("/ math.sqrt(self.size)", "* self.width ** -0.5"),),
        (
            ("math.sqrt(self.size)", "math.sqrt(self.heads * self.head_size)"),
            (SET, SET + "        self.head_size = 8\n"),
        ),
        (("math.sqrt(self.size)", "self.scale"), (SET, SET + "        self.scale = width ** 0.5\n")),
        ((SET, "        assert width % heads == 0\n        self.size = 8\n"), ("sqrt(self.size)", "sqrt(self.width)")),
    ],
    ids=["root", "power", "times", "product", "scale", "remainder"],
)
def test_a_scale_by_the_width_is_named_with_its_line(shared_engine: Engine, edits: tuple[tuple[str, str], ...]) -> None:
    report = graded(shared_engine, edited(*edits))
    (mistake,) = report.diagnosis[0].mistakes

    assert (report.outcome, mistake.id) == ("failed", "scale.embed_dim")
    assert any(word in (mistake.source_line or "") for word in ("width ** 0.5", "sqrt(self.", "* self.width"))


@pytest.mark.parametrize(
    "edits",
    [
        (
            ("(self.size)\n        if", "(width)\n        if"),
            (
                "def forward(self, x, mask=None):\n",
                "def forward(self, x, mask=None):\n        width = x.shape[-1] // self.heads\n",
            ),
        ),
        (("math.sqrt(self.size)", "self.width ** 0.5"), (SET, SET + "        self.width = width // heads\n")),
        (
            (
                "        self.dropout =",
                "        self.start = nn.Parameter(torch.randn(width) * width ** -0.5)\n        self.dropout =",
            ),
        ),
        (("math.sqrt(self.size)", "math.sqrt(self.d_k)"), (SET, SET + "        self.d_k = 8\n")),
    ],
    ids=["another width", "set again", "first weights", "a size of its own"],
)
def test_a_scale_that_may_be_that_of_a_head_is_not(shared_engine: Engine, edits: tuple[tuple[str, str], ...]) -> None:
    assert graded(shared_engine, edited(*edits)).outcome == "ungraded"


@pytest.mark.parametrize(
    ("edits", "id", "line"),
    [
        (
            (("self.dropout(torch.softmax(scores, dim=-1))", "torch.softmax(scores, dim=-1)"),),
            "dropout.never",
            "self.dropout =",
        ),
        ((("mask is not None", "False"), ("mask == 0", "torch.eye(8) == 0")), "mask.lost", "def forward"),
    ],
)
def test_what_is_taken_and_never_used_is_named(
    shared_engine: Engine, edits: tuple[tuple[str, str], ...], id: str, line: str
) -> None:
    report = graded(shared_engine, edited(*edits))
    (mistake,) = report.diagnosis[0].mistakes

    assert (report.outcome, mistake.id) == ("failed", id)
    assert line in (mistake.source_line or "")
    assert not report.notes


def test_of_two_masks_one_may_be_left_over(shared_engine: Engine) -> None:
    two = edited(("forward(self, x, mask=None)", "forward(self, x, attention_mask=None, mask=None)"))
    report = graded(shared_engine, two)

    assert report.outcome == "ungraded"
    assert any("never reads 'attention_mask'" in note for note in report.notes)


CACHED = """
class Attention(nn.Module):
    def __init__(self, width, heads, groups, batch=4, length=64):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q, self.o = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(width, groups * self.size), nn.Linear(width, groups * self.size)
        self.cache_k = torch.zeros(batch, length, groups, self.size)
        self.cache_v = torch.zeros(batch, length, groups, self.size)

    def forward(self, x, start_pos=0):
        B, T, E = x.shape
        q = self.q(x).view(B, T, self.heads, self.size).transpose(1, 2)
        k, v = (layer(x).view(B, T, self.groups, self.size) for layer in (self.k, self.v))
        self.cache_k = self.cache_k.to(x)
        self.cache_v = self.cache_v.to(x)
        self.cache_k[:B, start_pos : start_pos + T] = k
        self.cache_v[:B, start_pos : start_pos + T] = v
        k, v = (cache[:B, : start_pos + T].transpose(1, 2) for cache in (self.cache_k, self.cache_v))
        k, v = (part.repeat_interleave(self.heads // self.groups, dim=1) for part in (k, v))
        hidden = torch.ones(T, start_pos + T, dtype=torch.bool).triu(start_pos + 1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(self.size)).masked_fill(hidden, float("-inf"))
        return self.o((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_keys_that_are_written_into_a_cache_of_another_order_are_named(shared_engine: Engine) -> None:
    right = graded(shared_engine, CACHED, "gqa")
    split = "view(B, T, self.groups, self.size) for"
    wrong = graded(shared_engine, CACHED.replace(split, split.replace(" for", ".transpose(1, 2) for")), "gqa")

    assert "cache.wrong_axis" not in told(right)
    assert (wrong.outcome, told(wrong)) == ("failed", {"cache.wrong_axis"})
    assert "self.cache_k[:B" in (wrong.diagnosis[0].mistakes[0].source_line or "")


def test_groups_that_nothing_repeats_for_the_query_heads_are_named(shared_engine: Engine) -> None:
    repeats = "        k, v = (part.repeat_interleave(self.heads // self.groups, dim=1) for part in (k, v))\n"
    assert CACHED.count(repeats) == 1
    wrong = graded(shared_engine, CACHED.replace(repeats, ""), "gqa")

    assert (wrong.outcome, told(wrong)) == ("failed", {"group.not_repeated"})
    assert "scores = (q @" in (wrong.diagnosis[0].mistakes[0].source_line or "")


LINEAR = """
class Attention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.first = nn.Linear(2 * hidden_size, hidden_size)
        self.second = nn.Linear(hidden_size, hidden_size)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, hidden, encoder_outputs):
        B, T, E = encoder_outputs.shape
        hidden = hidden.view(B, 1, E).repeat(1, T, 1)
        both = torch.cat((encoder_outputs, hidden), 2).view(-1, 2 * self.hidden_size)
        scores = self.score(self.second(self.first(both))).view(B, T)
        return torch.bmm(torch.softmax(scores, dim=1).unsqueeze(1), encoder_outputs).squeeze(1)
"""


def test_a_score_of_linear_layers_alone_is_named_in_any_layout(shared_engine: Engine) -> None:
    bent = LINEAR.replace("self.second(self.first(both))", "self.second(torch.tanh(self.first(both)))")
    wrong, right = (graded(shared_engine, text, "additive_attention") for text in (LINEAR, bent))

    assert (wrong.outcome, told(wrong)) == ("failed", {"additive.no_tanh"})
    assert not told(right)
