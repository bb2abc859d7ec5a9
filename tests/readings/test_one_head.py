"""One head of several: x is wider than its keys, wherever the two sizes come from. As one size for both, a division by
the width of x would pass."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.readings import inference
from attn_kata.readings.choice import Chosen

ONE = """
class Head(nn.Module):
    def __init__(self, GIVEN):
        super().__init__()
        BEFORE
        self.key = nn.Linear(WIDTH, SIZE, bias=False)
        self.query = nn.Linear(WIDTH, SIZE, bias=False)
        self.value = nn.Linear(WIDTH, SIZE, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        weights = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        weights = weights.masked_fill(torch.tril(torch.ones(T, T)) == 0, float("-inf"))
        return F.softmax(weights, dim=-1) @ v
"""
CONFIG = "class Config:\n    n_embd = 32\n    head_size = 8\n    n_head = 4\n\n"
DIVIDED = "head_size = {0}n_embd // {0}n_head"
# By the place of the sizes: what is above the class, its arguments, a line before the layers, and the names of the two.
PLACES = {
    "arguments": ("", "n_embd, head_size", "", "n_embd", "head_size"),
    "module_level": ("n_embd = 32\n", "head_size", "", "n_embd", "head_size"),
    "unset": ("", "head_size", "", "n_embd", "head_size"),
    "config": ("", "config", "", "config.n_embd", "config.head_size"),
    "config_and_argument": ("", "config, head_size", "", "config.n_embd", "head_size"),
    "class_of_sizes": (CONFIG, "", "", "Config.n_embd", "Config.head_size"),
    "class_of_sizes_and_argument": (CONFIG, "head_size", "", "Config.n_embd", "head_size"),
    "divided_arguments": ("", "n_embd, n_head", DIVIDED.format(""), "n_embd", "head_size"),
    "divided_config": ("", "config", DIVIDED.format("config."), "config.n_embd", "head_size"),
    "divided_module_level": ("n_embd = 32\nn_head = 4\n", "", DIVIDED.format(""), "n_embd", "head_size"),
    "divided_class_of_sizes": (CONFIG, "", DIVIDED.format("Config."), "Config.n_embd", "head_size"),
    "divided_by_another_name": (
        "",
        "n_embd, n_head",
        "self.attention_dim = n_embd // n_head",
        "n_embd",
        "self.attention_dim",
    ),
    "divided_in_place": ("", "n_embd, n_head", "", "n_embd", "n_embd // n_head"),
}


def head(place: str) -> str:
    above, given, before, width, size = PLACES[place]
    text = ONE.replace("GIVEN", given).replace("WIDTH", width).replace("SIZE", size)
    return HEAD + above + text.replace("BEFORE", before or "self.what = 'a head'")


@pytest.mark.parametrize("place", PLACES)
def test_one_head_is_told_and_read(place):
    source = head(place)
    told = inference.kata_of(source.encode())
    found = read(source, "self_attention")

    assert told is not None
    assert told[0] == "self_attention"
    assert isinstance(found, Chosen)
    assert (found.mistakes, found.reading.alike) == (0, False)


FUSED = (
    head("arguments")
    .replace("self.key = nn.Linear(n_embd, head_size, bias=False)", "self.qkv = nn.Linear(n_embd, 3 * head_size)")
    .replace("        self.query = nn.Linear(n_embd, head_size, bias=False)\n", "")
    .replace("        self.value = nn.Linear(n_embd, head_size, bias=False)\n", "")
    .replace("self.query(x), self.key(x), self.value(x)", "self.qkv(x).chunk(3, dim=-1)")
)


@pytest.mark.parametrize(("old", "outcome"), [("math.sqrt(k.shape[-1])", "passed"), ("math.sqrt(C)", "failed")])
def test_one_head_with_one_layer_for_all_three_has_values_as_wide_as_keys(old, outcome, shared_engine):
    text = FUSED.replace("math.sqrt(k.shape[-1])", old)
    report = shared_engine.grade("self_attention", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == outcome
    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["scale.embed_dim"] * (
        outcome == "failed"
    )


@pytest.mark.parametrize("place", PLACES)
def test_a_division_by_the_width_of_x_is_named(place, shared_engine):
    source = head(place).replace("math.sqrt(k.shape[-1])", "math.sqrt(C)")
    report = shared_engine.grade("self_attention", source.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert [mistake.id for one in report.diagnosis for mistake in one.mistakes] == ["scale.embed_dim"]


@pytest.mark.parametrize("place", ["divided_config", "divided_arguments", "module_level"])
def test_a_right_head_passes_and_its_reading_is_typed_back(place, shared_engine):
    source = head(place).encode()
    report = shared_engine.grade("self_attention", source, attempt="mine.py", reads=True)
    flags = (report.reading or {})["flags"]
    again = read(head(place), "self_attention", *flags)

    assert report.outcome == "passed"
    assert isinstance(again, Chosen)
    assert again.reading.flags() == flags


def test_layers_as_wide_as_x_are_no_single_head():
    """Where the heads are meant and never split, the kata is mha, which names it."""
    text = head("divided_arguments").replace("nn.Linear(n_embd, head_size", "nn.Linear(n_embd, n_embd")
    told = inference.kata_of(text.encode())

    assert told is not None
    assert told[0] == "mha"


ONE_WITH_DROPOUT = """
class SingleHeadAttention(nn.Module):
    def __init__(self, embed_dim, dropout=0.1):
        super().__init__()
        self.query, self.key = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.value, self.out = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.query(query), self.key(key), self.value(value)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.out(self.dropout(scores.softmax(dim=-1)) @ v)
"""


@pytest.mark.parametrize("slug", ["qkv_attention", "mha"])
def test_the_dropout_of_one_head_is_graded(slug, shared_engine):
    """The weights are read off the columns of a head, which must have twice as many as there are tokens."""
    text = ONE_WITH_DROPOUT
    if slug == "mha":
        text = text.replace("query, key, value, mask", "x, mask").replace("(query)", "(x)")
        text = text.replace("self.key(key), self.value(value)", "self.key(x), self.value(x)")
    report = shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)
    outcomes = {one.property: one.outcome for one in report.findings}

    assert report.outcome == "passed", report.ungraded_because
    assert outcomes["dropout_acts_on_weights"] == "passed"


SIZES_AS_ARGUMENTS = head("arguments").replace("math.sqrt(k.shape[-1])", "math.sqrt(SIZE)")


def test_a_size_that_nothing_sets_is_read_as_another_cells_and_the_report_says_so(shared_engine):
    report = shared_engine.grade("self_attention", head("unset").encode(), attempt="mine.py", reads=True)
    notes = " ".join((report.reading or {})["notes"])

    assert report.outcome == "passed"
    assert "Nothing in the file sets n_embd" in notes
    assert "python.undefined_name" in notes


@pytest.mark.parametrize(("size", "outcome"), [("d_k", "failed"), ("k.shape[-1]", "passed")])
def test_a_size_that_nothing_sets_is_a_mistake_where_all_sizes_are_arguments(size, outcome, shared_engine):
    source = SIZES_AS_ARGUMENTS.replace("SIZE", size).encode()
    report = shared_engine.grade("self_attention", source, attempt="mine.py", reads=True)

    assert report.outcome == outcome
    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["python.undefined_name"] * (
        outcome == "failed"
    )


def test_the_same_size_is_another_files_where_a_star_may_bring_it(shared_engine):
    source = "from sizes import *\n" + SIZES_AS_ARGUMENTS.replace("SIZE", "d_k")
    report = shared_engine.grade("self_attention", source.encode(), attempt="mine.py", reads=True)

    assert "python.undefined_name" not in [one.id for found in report.diagnosis for one in found.mistakes]
