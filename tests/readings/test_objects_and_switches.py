"""Objects that a call or a constructor takes: masks in an object, configs of a class; and modes and flags that are left out."""

from __future__ import annotations

import pytest
from tests.readings.test_how_far_it_is_right import ATTEND, MERGE, SCALE
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference

ANNOTATED = "width, n_heads):"
OBJECT = """
class TriangularMask:
    def __init__(self, length):
        self._mask = torch.ones(length, length, dtype=torch.bool).triu(1)

    @property
    def mask(self):
        return self._mask


class FullAttention(nn.Module):
    def __init__(self, mask_flag=True, scale=None):
        super().__init__()
        self.scale, self.mask_flag = scale, mask_flag

    def forward(self, queries, keys, values, attn_mask):
        B, L, H, E = queries.shape
        scale = self.scale or 1.0 / math.sqrt(E)
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if self.mask_flag:
            if attn_mask is None:
                attn_mask = TriangularMask(L)
            scores.masked_fill_(attn_mask.mask, -math.inf)
        return torch.einsum("bhls,bshd->blhd", torch.softmax(scale * scores, dim=-1), values).contiguous()
"""
OF_A_CLASS = """
class ModelConfig:
    def __init__(self, width=64, n_heads=4):
        self.width, self.n_heads = width, n_heads

    def validate(self):
        assert self.width % self.n_heads == 0

""" + ATTEND.replace(ANNOTATED, "config: ModelConfig):").replace(
    "        self.h, self.d = n_heads, width // n_heads",
    """        if not isinstance(config, ModelConfig):
            raise TypeError("a ModelConfig is needed")
        config.validate()
        width = config.width
        self.h, self.d = config.n_heads, width // config.n_heads""",
)
INVERSE = (
    ATTEND.replace(ANNOTATED, "width, n_heads, inv_sqrt_dk):")
    .replace("        self.h,", "        self.inv_sqrt_dk = inv_sqrt_dk\n        self.h,")
    .replace(SCALE, "scores * self.inv_sqrt_dk")
)
ROTARY = ATTEND.replace("forward(self, x):", "forward(self, x, rotary_pos_emb=None):").replace(
    "        scores = q @",
    "        if rotary_pos_emb is not None:\n            q, k = turned(rotary_pos_emb, q, k)\n        scores = q @",
)
MODE = """
def attend(q, k, v, mode):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mode == "causal":
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(dim=-1) @ v
"""
RIGHT = [
    ("sdpa", OBJECT, "math.sqrt(E)", "E", "scale.no_sqrt"),
    ("mha", OF_A_CLASS, SCALE, "scores / E**0.5", "scale.embed_dim"),
    ("mha", INVERSE, "softmax(dim=-1)", "softmax(dim=-2)", "softmax.query_axis"),
    ("mha", ROTARY, SCALE, "scores / E**0.5", "scale.embed_dim"),
    ("sdpa", MODE, "triu(1)", "triu(0)", "mask.shifted"),
    ("sdpa", MODE, "triu(1)", "tril(-1)", "mask.upper_triangle"),
]


@pytest.mark.parametrize(("kata", "text"), dict.fromkeys((kata, text) for kata, text, *_ in RIGHT))
def test_it_is_right_and_the_reading_can_be_typed_back(shared_engine, kata, text):
    source = (HEAD + text).encode()
    report = shared_engine.grade(kata, source, attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading is not None
    again = shared_engine.grade(kata, source, attempt="mine.py", reads=True, flags=tuple(report.reading["flags"]))
    assert again.reading == report.reading


@pytest.mark.parametrize(("kata", "text", "old", "new", "id"), RIGHT)
def test_its_mistake_is_named(shared_engine, kata, text, old, new, id):
    assert text.count(old) == 1
    report = shared_engine.grade(kata, (HEAD + text.replace(old, new)).encode(), attempt="mine.py", reads=True)

    assert id in [mistake.id for one in report.diagnosis for mistake in one.mistakes], report.ungraded_because


def test_rotary_positions_that_are_left_out_are_said(shared_engine):
    report = shared_engine.grade("mha", (HEAD + ROTARY).encode(), attempt="mine.py", reads=True)

    assert report.reading is not None
    assert "its rotary positions are left out" in report.reading["departures"]


SWITCHED = (
    ATTEND.replace(ANNOTATED, "width, n_heads, max_len, causal=False):")
    .replace(
        "        self.h,",
        "        self.causal = causal\n        self.register_buffer('later', torch.ones(max_len, max_len).tril()[None, None])\n"
        "        self.h,",
    )
    .replace(
        SCALE, SCALE + "\n        if self.causal:\n            scores = scores.masked_fill(self.later[CUT] == 0, -1e9)"
    )
)


@pytest.mark.parametrize(("cut", "said"), [(":, :T, :T", True), (":, :, :T, :T", False)])
def test_a_switched_triangle_that_is_cut_along_other_dimensions_is_said(shared_engine, cut, said):
    text = HEAD + SWITCHED.replace("CUT", cut)
    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.passed
    assert report.reading is not None
    assert any("causal=True" in note and "mask.fixed_size" in note for note in report.reading["notes"]) is said


OF_TOKENS = (
    ATTEND.replace("forward(self, x):", "forward(self, q, k, v, mask):")
    .replace("x.shape", "q.shape")
    .replace(
        "(w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))",
        "(w(x).view(B, T, self.h, self.d).transpose(1, 2) for w, x in ((self.w_q, q), (self.w_k, k), (self.w_v, v)))",
    )
    .replace(
        SCALE,
        SCALE + "\n        hidden = 1 - mask.unsqueeze(1) * mask.unsqueeze(-1)\n"
        "        scores = scores.masked_fill(hidden.bool()[:, None], -1e9)",
    )
)


@pytest.mark.parametrize(("fill", "ids"), [("-1e9", []), ("0.0", ["mask.zero_fill"])])
def test_a_mask_of_tokens_for_three_inputs_hides_queries_too(shared_engine, fill, ids):
    assert OF_TOKENS.count("-1e9") == 1
    text = HEAD + OF_TOKENS.replace("-1e9", fill)
    report = shared_engine.grade("qkv_attention", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == ("failed" if ids else "passed"), report.ungraded_because
    assert [mistake.id for one in report.diagnosis for mistake in one.mistakes] == ids
    assert report.reading is not None
    assert "its mask hides queries too" in report.reading["departures"]


CONDITION = (
    ATTEND.replace("forward(self, x):", "forward(self, x, mask=None):")
    .replace(SCALE, SCALE + "\n        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)")
    .replace("        B, T,", "        if mask:\n            mask = mask.unsqueeze(1)\n        B, T,")
)
UNKNOWN_NAME = ATTEND.replace("nn.Linear(width, width) for", "nn.Linear(width, out_featurs=width) for")
UNKNOWN_OF_TORCH = ATTEND.replace("(nn.Linear(width, width) for", "(torch.rand(width, width, bias=False) for")
OF_FLOATS = ATTEND.replace("nn.Linear(width, width) for", "nn.Linear(width, width / 1) for")
IN_FORWARD = ATTEND.replace(
    "        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))\n", ""
)
IN_FORWARD = (
    IN_FORWARD.replace("(w(x)", "(nn.Linear(E, E)(x)")
    .replace("for w in (self.w_q, self.w_k, self.w_v)", "for _ in range(3)")
    .replace("self.w_o(", "nn.Linear(E, E)(")
)
WITH_A_MASK = (
    ATTEND.replace("forward(self, x):", "forward(self, x, mask=None):")
    .replace(SCALE, SCALE + "\n        scores = scores.masked_fill(mask[:, None, None, :] == 0, -1e9)")
    .replace("self.w_o(context", "self.to_out(context")
)
BLOCK = (
    "def scaled(q, k, v):\n    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v\n\n"
    + UNKNOWN_NAME.replace("class Attend", "class MultiHeadAttentionBlock")
    .replace("scores = q @ k.transpose(-2, -1)", "context = scaled(q, k, v)")
    .replace(
        "        scores = scores / self.d**0.5\n        weights = scores.softmax(dim=-1)\n        context = weights @ v\n",
        "",
    )
)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        (CONDITION, "mask.as_condition"),
        (UNKNOWN_NAME, "python.arguments"),
        (UNKNOWN_OF_TORCH, "python.arguments"),
        (OF_FLOATS, "python.arguments"),
        (IN_FORWARD, "module.rebuilt"),
        (WITH_A_MASK, "python.undefined_name"),
    ],
)
def test_what_it_raises_by_its_own_mistake_is_named(shared_engine, text, id):
    assert MERGE in text
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert id in [mistake.id for one in report.diagnosis for mistake in one.mistakes], report.ungraded_because


def test_the_block_that_makes_q_and_k_is_graded_before_the_function_that_it_calls(shared_engine):
    assert "context = scaled(q, k, v)\n        return" in BLOCK
    kata, name, _ = next(iter(inference.katas_of((HEAD + BLOCK).encode())))
    report = shared_engine.grade(kata, (HEAD + BLOCK).encode(), attempt="mine.py", reads=True)

    assert (kata, name) == ("mha", "MultiHeadAttentionBlock")
    assert [mistake.id for one in report.diagnosis for mistake in one.mistakes] == ["python.arguments"]


def test_a_rate_that_is_taken_for_a_size_is_no_mistake_of_the_code(shared_engine):
    text = ATTEND.replace(ANNOTATED, "width, n_heads, dropout):").replace(
        "        self.h,", "        self.extra = nn.Linear(dropout, 4)\n        self.h,"
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
