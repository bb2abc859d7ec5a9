"""Layers have the sizes that the code gives them. A layer of the wrong size raises in every use, and no reading may hide it:
the kata's weights, which are laid into the code's layers, have sizes of their own."""

from __future__ import annotations

import re

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_conventions_of_blocks import BLOCK
from tests.readings.test_interfaces import ATTEND as SELF_ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine

ATTEND = """
class Attend(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.d_k = n_heads, d_model // n_heads
        self.to_q = nn.Linear(d_model, d_model)
        self.to_k = nn.Linear(d_model, d_model)
        self.to_v = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (w(x).view(b, t, self.h, self.d_k).transpose(1, 2) for w in (self.to_q, self.to_k, self.to_v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d_k), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, e))
"""
ACROSS = (
    ATTEND.replace("d_model, n_heads):", "d_model, d_context, n_heads):")
    .replace("self.to_k = nn.Linear(d_model,", "self.to_k = nn.Linear(d_context,")
    .replace("self.to_v = nn.Linear(d_model,", "self.to_v = nn.Linear(d_context,")
    .replace("forward(self, x):", "forward(self, x, context):")
    .replace(
        "q, k, v = (w(x).view(b, t, self.h, self.d_k).transpose(1, 2) for w in (self.to_q, self.to_k, self.to_v))",
        "q, k, v = (\n            w(y).view(b, -1, self.h, self.d_k).transpose(1, 2)\n"
        "            for w, y in ((self.to_q, x), (self.to_k, context), (self.to_v, context))\n        )",
    )
)
FUSED = ATTEND.replace(
    "        self.to_q = nn.Linear(d_model, d_model)\n", "        self.qkv = nn.Linear(d_model, 3 * d_model)\n"
)
FUSED = FUSED.replace(
    "        self.to_k = nn.Linear(d_model, d_model)\n        self.to_v = nn.Linear(d_model, d_model)\n", ""
)
FUSED = FUSED.replace("w(x).view", "w.view").replace("(self.to_q, self.to_k, self.to_v)", "self.qkv(x).chunk(3, -1)")
ADDED = """
class Bahdanau(nn.Module):
    def __init__(self, query_size, key_size, attn_size):
        super().__init__()
        self.of_query, self.of_key = nn.Linear(query_size, attn_size, bias=False), nn.Linear(key_size, attn_size, bias=False)
        self.energy = nn.Linear(attn_size, 1, bias=False)

    def forward(self, query, keys):
        scores = self.energy(torch.tanh(self.of_query(query).unsqueeze(1) + self.of_key(keys))).squeeze(-1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights
"""
ONE_OF_HEADS = """
class Head(nn.Module):
    def __init__(self, n_embd, head_size):
        super().__init__()
        self.qkv = nn.Linear(n_embd, 3 * head_size, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]), dim=-1) @ v
"""
WRONG = [
    ("mha", ATTEND, "self.to_v = nn.Linear(d_model, d_model)", "self.to_v = nn.Linear(d_model, self.d_k)"),
    ("mha", ATTEND, "self.to_q = nn.Linear(d_model, d_model)", "self.to_q = nn.Linear(self.d_k, d_model)"),
    ("mha", ATTEND, "self.out = nn.Linear(d_model, d_model)", "self.out = nn.Linear(self.d_k, d_model)"),
    ("mha", ATTEND, "self.out = nn.Linear(d_model, d_model)", "self.out = nn.Linear(d_model, n_heads)"),
    ("mha", FUSED, "nn.Linear(d_model, 3 * d_model)", "nn.Linear(d_model, 3 * self.d_k)"),
    (
        "cross_attention",
        ACROSS,
        "self.to_v = nn.Linear(d_context, d_model)",
        "self.to_v = nn.Linear(d_context, self.d_k)",
    ),
    ("cross_attention", ACROSS, "self.out = nn.Linear(d_model, d_model)", "self.out = nn.Linear(d_model, n_heads)"),
    ("cross_attention", ACROSS, "self.to_v = nn.Linear(d_context, d_model)", "self.to_v = nn.Linear(d_model, d_model)"),
    ("additive_attention", ADDED, "nn.Linear(key_size, attn_size", "nn.Linear(key_size, key_size"),
    ("additive_attention", ADDED, "nn.Linear(attn_size, 1", "nn.Linear(key_size, 1"),
    ("fused_qkv", ONE_OF_HEADS, "3 * head_size", "3 * n_embd"),
]


@pytest.mark.parametrize(("slug", "text", "old", "new"), WRONG)
def test_a_layer_of_the_wrong_size_is_not_right(slug, text, old, new, shared_engine: Engine) -> None:
    _, wrong = right_and_wrong(shared_engine, slug, text, old, new)

    assert wrong.outcome in ("failed", "ungraded")
    assert wrong.outcome == "failed" or re.search(r"\(\d+, \d+\)|do not fit one another", wrong.ungraded_because)


@pytest.mark.parametrize("flags", [("build=d_model=E,n_heads=H",), ("v=to_v.weight+to_v.bias",)])
def test_nor_is_it_where_the_reading_is_typed(flags, shared_engine: Engine) -> None:
    text = ATTEND.replace(*WRONG[0][2:])
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == "ungraded"
    assert "to_v.weight has the shape (4, 24)" in report.ungraded_because
    assert "correct the size of this layer" in report.ungraded_because


ONE_HEAD = """
class Attend(nn.Module):
    def __init__(self, h_dim=64):
        super().__init__()
        self.wq, self.wk, self.wv = nn.Linear(h_dim, h_dim), nn.Linear(h_dim, h_dim), nn.Linear(h_dim, h_dim)
        self.h_dim = h_dim

    def forward(self, x, mask):
        scores = self.wq(x) @ self.wk(x).transpose(-2, -1) / math.sqrt(self.h_dim)
        return scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ self.wv(x)
"""
BY_CONFIG = ATTEND.replace("d_model, n_heads):", "config):").replace("d_model // n_heads", "config.d_embedding")
BY_CONFIG = BY_CONFIG.replace("n_heads", "config.n_heads").replace(
    "nn.Linear(d_model, d_model)", "nn.Linear(config.d, config.d)"
)
BY_CONFIG = BY_CONFIG.replace("self.h, self.d_k = config.n_heads, config.d_embedding", "self.config = config")
BY_CONFIG = BY_CONFIG.replace("self.h, self.d_k", "self.config.n_heads, self.config.d_embedding")
BY_CONFIG = BY_CONFIG.replace("math.sqrt(self.d_k)", "math.sqrt(self.config.d_embedding)")
IN_A_BASE = "from layers_of_another_file import BaseAttention\n" + ATTEND.replace(
    "(nn.Module)", "(BaseAttention)"
).replace("super().__init__()", "super().__init__(d_model)").replace("reshape(b, t, e)", "reshape(b, t, self.d_model)")
# What names alone do not say: the width of the one head, the size of a head in a config, a size that a base class keeps.
TOLD = [
    (ONE_HEAD, " / math.sqrt(self.h_dim)", "", "scale.missing", "h_dim=E"),
    (BY_CONFIG, " / math.sqrt(self.config.d_embedding)", "", "scale.missing", "config.d_embedding=D"),
    (IN_A_BASE, " / math.sqrt(self.d_k)", "", "scale.missing", "constants=d_model=E"),
]


@pytest.mark.parametrize(("text", "old", "new", "mistake", "flag"), TOLD)
def test_a_size_that_its_name_does_not_tell_is_told_by_the_code(
    text, old, new, mistake, flag, shared_engine: Engine
) -> None:
    right, wrong = right_and_wrong(shared_engine, "mha", text, old, new)

    assert any(flag in one for one in right.reading["flags"])
    assert told(wrong) == {mistake}


def test_a_size_that_the_class_forgot_is_no_size_of_a_base_class(shared_engine: Engine) -> None:
    text = ATTEND.replace("reshape(b, t, e)", "reshape(b, t, self.d_model)")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert told(report) == {"python.undefined_name"}


@pytest.mark.parametrize("flag", ["q=to_q", "q=to_q.weight+to_q.bias"])
def test_a_layer_may_be_named_without_its_parameters(flag, shared_engine: Engine) -> None:
    report = shared_engine.grade("mha", (HEAD + ATTEND).encode(), attempt="mine.py", reads=True, flags=(flag,))

    assert report.outcome == "passed"
    assert "q=to_q.weight+to_q.bias" in report.reading["flags"]


def test_what_is_to_be_left_out_must_be_there(shared_engine: Engine) -> None:
    flags = ("bypassed=norm",)
    report = shared_engine.grade("mha", (HEAD + ATTEND).encode(), attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == "ungraded"
    assert "Attend has no submodule 'norm' that could be left out" in report.ungraded_because


SEVERAL_NAMES = """
class Attend(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.h, self.d = num_heads, d_out // num_heads
        self.q, self.k, self.v = nn.Linear(d_in, d_out), nn.Linear(d_in, d_out), nn.Linear(d_in, d_out)
        self.out = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, self.h, self.d).transpose(1, 2) for w in (self.q, self.k, self.v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, -1))
"""
INNER = """
class Attend(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.h, inner = heads, heads * dim_head
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * inner, bias=False), nn.Linear(inner, dim)
        self.scale = dim_head**-0.5

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, self.h, -1).transpose(1, 2) for part in self.to_qkv(x).chunk(3, dim=-1))
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).reshape(b, t, -1))
"""
ONE_HEAD_WITH_OUTPUT = """
class Attend(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.wq, self.wk, self.wv = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k), nn.Linear(d_model, d_v)
        self.wo, self.d_k = nn.Linear(d_v, d_model), d_k

    def forward(self, x):
        scores = self.wq(x) @ self.wk(x).transpose(1, 2) / math.sqrt(self.d_k)
        return self.wo(scores.softmax(-1) @ self.wv(x))
"""
ACROSS_CHANNELS = """
class Attend(nn.Module):
    def __init__(self, pix_ch, text_ch, heads, dim_head):
        super().__init__()
        hidden, self.h, self.d = heads * dim_head, heads, dim_head
        self.to_q = nn.Linear(pix_ch, hidden, bias=False)
        self.to_k = nn.Linear(text_ch, hidden, bias=False)
        self.to_v = nn.Linear(text_ch, hidden, bias=False)
        self.to_out = nn.Linear(hidden, pix_ch)

    def forward(self, x, context):
        b, n, _ = x.shape
        pairs = ((self.to_q, x), (self.to_k, context), (self.to_v, context))
        q, k, v = (w(y).view(b, -1, self.h, self.d).transpose(1, 2) for w, y in pairs)
        weights = (q @ k.mT / self.d**0.5).softmax(-1)
        return self.to_out((weights @ v).transpose(1, 2).reshape(b, n, -1))
"""
KEYS_AND_VALUES = """
class Attend(nn.Module):
    def __init__(self, features, key_size, value_size):
        super().__init__()
        self.query = nn.Parameter(torch.randn(features, key_size) / features**0.5)
        self.key = nn.Parameter(torch.randn(features, key_size) / features**0.5)
        self.value = nn.Parameter(torch.randn(features, value_size) / features**0.5)

    def forward(self, x):
        q, k, v = x @ self.query, x @ self.key, x @ self.value
        return F.softmax(q @ k.transpose(1, 2) * k.size(-1) ** -0.5, dim=2) @ v
"""


@pytest.mark.parametrize(
    ("kata", "text", "old", "new"),
    [
        ("mha", ONE_HEAD_WITH_OUTPUT, "nn.Linear(d_v, d_model)", "nn.Linear(d_k, d_model)"),
        ("cross_attention", ACROSS_CHANNELS, "self.to_v = nn.Linear(text_ch", "self.to_v = nn.Linear(pix_ch"),
        (
            "self_attention",
            KEYS_AND_VALUES,
            "self.key = nn.Parameter(torch.randn(features, key_size)",
            "self.key = nn.Parameter(torch.randn(key_size, features)",
        ),
        ("mha", SEVERAL_NAMES, "self.out = nn.Linear(d_out, d_out)", "self.out = nn.Linear(d_in, d_out)"),
        ("mha", SEVERAL_NAMES, "nn.Linear(d_in, d_out)\n", "nn.Linear(d_out, d_out)\n"),
        ("mha", INNER, "nn.Linear(inner, dim)", "nn.Linear(dim, dim)"),
        ("mha", INNER, "nn.Linear(dim, 3 * inner", "nn.Linear(dim, 3 * dim"),
    ],
)
def test_sizes_that_the_kata_does_not_tell_apart_are_told_apart_in_a_note(
    kata, text, old, new, shared_engine: Engine
) -> None:
    """It is right where they are equal, as the kata has them, and raises where they are not."""
    right, wrong = right_and_wrong(shared_engine, kata, text, old, new)

    assert not any("tells apart" in note for note in right.reading["notes"])
    assert any("a layer has the wrong size" in note for note in wrong.reading["notes"])


def test_a_layer_of_a_score_that_fits_no_input_is_not_right(shared_engine: Engine) -> None:
    old, new = "self.of_query, self.of_key = nn.Linear(query_size", "self.of_query, self.of_key = nn.Linear(key_size"
    assert ADDED.count(old) == 1
    report = shared_engine.grade(
        "additive_attention", (HEAD + ADDED.replace(old, new)).encode(), attempt="mine.py", reads=True
    )

    assert report.outcome == "ungraded"
    assert "its own layers do not fit one another" in report.ungraded_because


A_CONFIG = """
class Attend(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.h = cfg["heads"]
        self.qkv, self.out = nn.Linear(cfg["emb"], 3 * cfg["emb"]), nn.Linear(cfg["emb"], cfg["emb"])
        self.register_buffer("tri", torch.tril(torch.ones(cfg["SIDE"], cfg["SIDE"])).bool())

    def forward(self, x):
        b, t, c = x.shape
        x = self.qkv(x).view(b, t, 3, self.h, c // self.h).permute(2, 0, 3, 1, 4)
        q, k, v = x
        scores = (q @ k.transpose(-1, -2) * k.shape[-1] ** -0.5).masked_fill(~self.tri[:t, :t], -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
"""


@pytest.mark.parametrize(("side", "outcome"), [("ctx", "passed"), ("quux", "ungraded")])
def test_a_size_of_a_config_that_nobody_knows_is_no_mistake_of_the_code(side, outcome, shared_engine: Engine) -> None:
    text = A_CONFIG.replace("SIDE", side)
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == outcome
    assert told(report) == set()


def test_a_number_of_directions_is_no_width(shared_engine: Engine) -> None:
    text = ADDED.replace("key_size, attn_size):", "key_size, enc_num_dirs, attn_size):")
    text = text.replace("nn.Linear(key_size, attn_size", "nn.Linear(key_size * enc_num_dirs, attn_size")
    report = shared_engine.grade("additive_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because
    assert any("enc_num_dirs=1" in flag for flag in report.reading["flags"])


NARROW = """
class Attend(nn.Module):
    def __init__(self, input_dim, dim, num_heads):
        super().__init__()
        self.q, self.k, self.v = (
            nn.ModuleList(nn.Linear(input_dim, dim) for _ in range(num_heads)) for _ in range(3)
        )
        self.scale, self.last = dim**-0.5, nn.Linear(num_heads * dim, dim)

    def forward(self, x):
        outs = []
        for wq, wk, wv in zip(self.q, self.k, self.v):
            outs.append((wq(x) @ wk(x).transpose(-2, -1) * self.scale).softmax(-1) @ wv(x))
        return self.last(torch.cat(outs, dim=-1))
"""


def test_an_output_as_narrow_as_one_head_may_be_meant(shared_engine: Engine) -> None:
    _, wrong = right_and_wrong(shared_engine, "mha", NARROW, " * self.scale", "")

    assert told(wrong) == {"scale.missing"}


def test_an_mlp_may_be_told_how_many_times_as_wide_it_is_by_the_name_of_a_width(shared_engine: Engine) -> None:
    block = BLOCK.replace("nn.Linear(width, mlp_dim)", "nn.Linear(width, mlp_dim * width)").replace(
        "nn.Linear(mlp_dim,", "nn.Linear(mlp_dim * width,"
    )
    report = shared_engine.grade(
        "transformer_block", (HEAD + SELF_ATTEND + block).encode(), attempt="mine.py", reads=True
    )

    assert report.outcome == "passed", report.ungraded_because
    assert any("mlp_dim=2" in flag for flag in report.reading["flags"])


BEHIND_AN_RNN = ATTEND.replace(
    "self.h, self.d_k =", "self.rnn = nn.GRU(d_model, d_model, batch_first=True)\n        self.h, self.d_k ="
)
BEHIND_AN_RNN = BEHIND_AN_RNN.replace("b, t, e = x.shape", "x, _ = self.rnn(x)\n        b, t, e = x.shape")


def test_an_rnn_that_is_left_out_still_returns_its_outputs_and_a_state(shared_engine: Engine) -> None:
    flags = ("bypassed=rnn", "q=to_q", "k=to_k", "v=to_v", "o=out")
    report = shared_engine.grade("mha", (HEAD + BEHIND_AN_RNN).encode(), attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == "passed", report.ungraded_because


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("w(x).view(b, t, self.h, self.d_k)", "w(x).view(b, t, 1, self.d_k)"),
        ("w(x).view(b, t, self.h, self.d_k)", "w(x).view(b, t, self.h, e)"),
        (".reshape(b, t, e)", ".reshape(b, t, self.d_k)"),
    ],
)
def test_code_that_raises_for_several_heads_alone_has_a_wrong_size_in_its_split_or_merge(
    old, new, shared_engine: Engine
) -> None:
    _, wrong = right_and_wrong(shared_engine, "mha", ATTEND, old, new)

    assert wrong.outcome == "failed", wrong.ungraded_because
    assert any(note.startswith("With one head it is right. With several") for note in wrong.reading["notes"])


def test_a_scale_that_is_off_by_default_is_said(shared_engine: Engine) -> None:
    scale = " / math.sqrt(self.d_k)"
    text = ATTEND.replace(f"q @ k.transpose(-2, -1){scale}", "(q @ k.transpose(-2, -1) / self.by)")
    text = text.replace("n_heads):", "n_heads, scaled=DEFAULT):")
    text = text.replace(
        "        self.to_q =", "        self.by = math.sqrt(self.d_k) if scaled else 1.0\n        self.to_q ="
    )
    off, on = (
        shared_engine.grade("mha", (HEAD + text.replace("DEFAULT", each)).encode(), attempt="mine.py", reads=True)
        for each in ("False", "True")
    )

    assert (off.outcome, on.outcome) == ("passed", "passed"), off.ungraded_because
    assert [any("this is scale.missing" in note for note in each.reading["notes"]) for each in (off, on)] == [
        True,
        False,
    ]


COVERED = """
class Attention(nn.Module):
    def __init__(self, hidden_dim, use_coverage):
        super().__init__()
        self.energy = nn.Linear(hidden_dim, 1, bias=False)
        self.of_keys = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.of_query, self.use_coverage = nn.Linear(hidden_dim, hidden_dim, bias=False), use_coverage
        if use_coverage:
            self.of_coverage = nn.Linear(1, hidden_dim, bias=False)

    def forward(self, query, keys):
        features = self.of_keys(keys) + self.of_query(query).unsqueeze(1)
        if self.use_coverage:
            features = features + self.of_coverage(keys.sum(-1, keepdim=True))
        weights = F.softmax(self.energy(torch.tanh(features)).squeeze(-1), dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights
"""


def test_what_a_name_switches_is_off_unless_it_has_a_default(shared_engine: Engine) -> None:
    right, wrong = right_and_wrong(shared_engine, "additive_attention", COVERED, "torch.tanh(features)", "features")

    assert any("use_coverage=False" in flag for flag in right.reading["flags"])
    assert told(wrong) == {"additive.no_tanh"}

    by_default = ATTEND.replace("n_heads):", "n_heads, use_scaling=True):")
    by_default = by_default.replace(" / math.sqrt(self.d_k)", " / (math.sqrt(self.d_k) if self.scales else 1.0)")
    by_default = by_default.replace("self.h, self.d_k =", "self.scales = use_scaling\n        self.h, self.d_k =")
    right, _ = right_and_wrong(shared_engine, "mha", by_default, "dim=-1)", "dim=-2)")

    assert not any("use_scaling" in flag for flag in right.reading["flags"])


REDUCED = (
    ATTEND.replace("n_heads):", "n_heads, reduction=1):")
    .replace("d_model // n_heads", "d_model // reduction // n_heads")
    .replace("nn.Linear(d_model, d_model)\n", "nn.Linear(d_model, d_model // reduction)\n")
    .replace(
        "self.out = nn.Linear(d_model, d_model // reduction)", "self.out = nn.Linear(d_model // reduction, d_model)"
    )
    .replace(".reshape(b, t, e)", ".reshape(b, t, -1)")
)


def test_what_divides_a_size_and_is_1_by_default_is_tried_with_another_number(shared_engine: Engine) -> None:
    old, new = "nn.Linear(d_model // reduction, d_model)", "nn.Linear(d_model, d_model)"
    right, wrong = right_and_wrong(shared_engine, "mha", REDUCED, old, new)

    said = "It is built with reduction=1. With reduction=2 the code raises"
    assert [any(said in note for note in each.reading["notes"]) for each in (right, wrong)] == [False, True]


def test_a_width_of_a_context_that_nothing_reads_is_said(shared_engine: Engine) -> None:
    unread = ACROSS_CHANNELS.replace("nn.Linear(text_ch,", "nn.Linear(pix_ch,")
    reports = [
        shared_engine.grade("cross_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (ACROSS_CHANNELS, unread)
    ]

    assert [one.outcome for one in reports] == ["passed", "passed"]
    said = "Its constructor takes text_ch, and nothing reads it"
    assert [any(said in note for note in one.reading["notes"]) for one in reports] == [False, True]


OF_NUMBERS = """
class Attention(nn.Module):
    def __init__(self, encoder_dim):
        super().__init__()
        self.of_hidden, self.of_features = nn.Linear(96, 96), nn.Linear(encoder_dim, 96)
        self.v = nn.Linear(96, 1)

    def forward(self, img_features, hidden_state):
        scores = self.v(torch.tanh(self.of_features(img_features) + self.of_hidden(hidden_state).unsqueeze(1))).squeeze(2)
        alpha = F.softmax(scores, dim=1)
        return (img_features * alpha.unsqueeze(2)).sum(dim=1), alpha
"""


def test_a_query_may_be_as_wide_as_a_number_in_the_code(shared_engine: Engine) -> None:
    _, wrong = right_and_wrong(shared_engine, "additive_attention", OF_NUMBERS, "torch.tanh(", "(")

    assert told(wrong) == {"additive.no_tanh"}


OF_KEYS = """
class Between(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.of_query = nn.Linear(query_dim, hidden_dim)
        self.of_key = nn.Linear(key_dim, hidden_dim)
        self.of_value = nn.Linear(key_dim, hidden_dim)

    def forward(self, query, key, value):
        q, k, v = self.of_query(query), self.of_key(key), self.of_value(value)
        return torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1) @ v
"""


def test_the_size_of_what_keys_are_made_of_is_no_size_of_a_head(shared_engine: Engine) -> None:
    text = OF_KEYS.replace("Between", "CrossAttention")
    right, wrong = right_and_wrong(shared_engine, "cross_attention", text, " / k.shape[-1] ** 0.5", "")

    assert "build=query_dim=E,key_dim=C,hidden_dim=E" in right.reading["flags"]
    assert told(wrong) == {"scale.missing"}


NUMBERED = """
class Attend(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.h = heads
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, width)
        self.outlayer = nn.Linear(width, width)

    def forward(self, x):
        (b, t, e), h = x.shape, self.h
        q, k, v = (one(x).view(b, t, h, e // h).transpose(1, 2) for one in (self.fc1, self.fc2, self.fc3))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(e // h), dim=-1)
        return self.outlayer((weights @ v).transpose(1, 2).reshape(b, t, e))
"""


@pytest.mark.parametrize("names", [("outlayer", "outlayer"), ("outlayer", "fc4")], ids=["an output", "all by numbers"])
def test_layers_that_differ_by_a_number_alone_are_told_by_their_order(names, shared_engine: Engine) -> None:
    """fc1 says nothing of the output, where fc2 and fc3 stand beside it."""
    text = NUMBERED.replace(*names)
    right, wrong = right_and_wrong(
        shared_engine, "mha", text, "(self.fc1, self.fc2, self.fc3)", "(self.fc1, self.fc2, self.fc2)"
    )

    layers = {line["what"]: line["value"] for line in right.reading["lines"]}
    assert [layers[role] for role in "qkv"] == ["fc1.weight", "fc2.weight", "fc3.weight"]
    assert told(wrong) == {"project.key_for_value"}


def test_values_of_the_query_layer_are_not_taken_for_those_of_the_key_layer(shared_engine: Engine) -> None:
    """With one width for all, each layer takes the context."""
    text = OF_KEYS.replace("query_dim, key_dim, hidden_dim)", "width)").replace("Between", "CrossAttention")
    for name in ("query_dim", "key_dim", "hidden_dim"):
        text = text.replace(name, "width")
    _, wrong = right_and_wrong(shared_engine, "cross_attention", text, "self.of_value(value)", "self.of_query(value)")

    assert told(wrong) == {"project.query_for_value"}


WIDTH_OF_VALUES = """
class Attend(nn.Module):
    def __init__(self, d_model, n_heads, d_value=None):
        super().__init__()
        if d_value is None:
            d_value = d_model
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_value, d_value), nn.Linear(d_value, d_value)

    def forward(self, q, k, v):
        B, width = q.shape[0], v.shape[-1]
        q, k, v = (
            layer(one).view(B, -1, self.h, one.shape[-1] // self.h).transpose(1, 2)
            for layer, one in ((self.w_q, q), (self.w_k, k), (self.w_v, v))
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, -1, width))
"""


def test_a_size_that_is_the_width_of_x_if_left_out_is_left_out(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "qkv_attention", WIDTH_OF_VALUES, " / q.shape[-1] ** 0.5", "")
    [built] = [line["value"] for line in right.reading["lines"] if line["what"] == "built with"]

    assert built == "d_model = E, n_heads = H"
    assert told(wrong) == {"scale.missing"}


def test_a_width_that_is_a_guess_and_raises_is_no_verdict(shared_engine):
    text = WIDTH_OF_VALUES.replace("d_value = d_model\n", "d_value = max(d_model, 1)\n")
    report = shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert "max(" in text
    assert report.outcome == "ungraded", told(report)


def test_a_size_that_the_heads_must_divide_is_that_of_all_heads(shared_engine):
    text = (
        ATTEND.replace("d_model, n_heads):", "d_model, n_heads, qk_dim):")
        .replace(
            "super().__init__()",
            "super().__init__()\n        if qk_dim % n_heads != 0:\n            raise ValueError(qk_dim)",
        )
        .replace(
            "nn.Linear(d_model, d_model)\n        self.to_k = nn.Linear(d_model, d_model)",
            "nn.Linear(d_model, qk_dim)\n        self.to_k = nn.Linear(d_model, qk_dim)",
        )
        .replace("view(b, t, self.h, self.d_k)", "view(b, t, self.h, -1)")
    )
    right, wrong = right_and_wrong(shared_engine, "mha", text, " / math.sqrt(self.d_k)", "")

    assert "qk_dim=E" in " ".join(right.reading["flags"])
    assert told(wrong) == {"scale.missing"}
