"""What the rest of a source says of an attention: what its callers give it, and which mask its words promise."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

OF_ONE_LENGTH = """
class MultiHead(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.h, self.d = heads, d_model // heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        B, T, E = query.shape
        q = self.w_q(query).view(B, T, self.h, self.d).transpose(1, 2)
        k = self.w_k(key).view(B, T, self.h, self.d).transpose(1, 2)
        v = self.w_v(value).view(B, T, self.h, self.d).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = torch.softmax(scores, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
OF_ANY_LENGTH = OF_ONE_LENGTH.replace("(key).view(B, T,", "(key).view(B, -1,").replace(
    "(value).view(B, T,", "(value).view(B, -1,"
)
USER = """

class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.attend = MultiHead(d_model, heads)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, memory):
        return self.attend(GIVEN)
"""
HANDED_IN = USER.replace("self, d_model, heads):", "self, d_model, attend: MultiHead):").replace(
    "MultiHead(d_model, heads)", "attend"
)
# The source has no other attention that this could be.
UNTYPED = HANDED_IN.replace("attend: MultiHead", "self_attn, src_attn").replace(
    "self.attend = attend", "self.src_attn = src_attn"
)
UNTYPED = UNTYPED.replace("return self.attend(GIVEN)", "m = memory\n        return (lambda x: self.src_attn(GIVEN))(x)")


@pytest.mark.parametrize(
    ("user", "given", "named"),
    [
        (UNTYPED, "x, m, m", {"context.query_length"}),
        (UNTYPED, "x, x, x", set()),
        (
            UNTYPED.replace("m = memory", "m = x") + "\n    def other(self, memory):\n        m = memory\n",
            "x, m, m",
            set(),
        ),
        (USER, "x, memory, memory", {"context.query_length"}),
        (USER, "self.norm(x), memory, memory", {"context.query_length"}),
        (HANDED_IN, "x, memory, memory", {"context.query_length"}),
        (USER, "x, x, x", set()),
        (USER, "self.norm(x), x, x", set()),
    ],
)
def test_code_for_one_length_is_wrong_where_its_caller_gives_it_keys_of_another(user, given, named, shared_engine):
    text = HEAD + OF_ONE_LENGTH + user.replace("GIVEN", given)

    report = shared_engine.grade(
        "qkv_attention", text.encode(), attempt="mine.py", reads=True, flags=("entry=MultiHead",)
    )

    assert told(report) == named
    assert report.passed == (not named)
    assert any("context.query_length" in note for note in report.reading["notes"]) == (not named)


ITS_OWN = OF_ONE_LENGTH.replace(
    "        B, T, E = query.shape\n", "        assert query.shape == key.shape\n        B, T, E = query.shape\n"
)


@pytest.mark.parametrize(
    ("text", "flags", "named"),
    [
        (OF_ONE_LENGTH, (), {"context.query_length"}),
        (OF_ONE_LENGTH, ("square=yes",), set()),
        (OF_ONE_LENGTH.replace("MultiHead", "MultiHeadSelfAttention"), (), set()),
        (ITS_OWN, (), set()),
    ],
    ids=["alone", "as the user says", "by its name", "by its own check"],
)
def test_a_view_by_the_length_of_the_queries_is_wrong_where_nothing_says_that_it_is_meant_so(
    text, flags, named, shared_engine
):
    source = (HEAD + text).encode()
    flags = (*flags, "entry=MultiHead") if "class MultiHead(" in text else flags
    report = shared_engine.grade("qkv_attention", source, attempt="mine.py", reads=True, flags=flags)
    typed_back = shared_engine.grade(
        "qkv_attention", source, attempt="mine.py", reads=True, flags=tuple(report.reading["flags"])
    )

    assert told(report) == told(typed_back) == named
    assert report.passed == typed_back.passed == (not named)
    assert any("--read square=yes" in note for note in report.reading["notes"]) == bool(named)


def test_what_is_handed_to_a_class_may_be_another_attention(shared_engine):
    text = OF_ONE_LENGTH + UNTYPED.replace("GIVEN", "x, m, m") + "\n\nclass OtherAttention(nn.Module):\n    pass\n"
    text = HEAD + text.replace("MultiHead", "MultiHeadSelf")

    report = shared_engine.grade(
        "qkv_attention", text.encode(), attempt="mine.py", reads=True, flags=("entry=MultiHeadSelf",)
    )

    assert report.passed


def test_the_reading_of_code_that_raises_for_another_length_can_be_typed_back(shared_engine):
    text = (HEAD + OF_ONE_LENGTH + USER.replace("GIVEN", "x, memory, memory")).encode()
    flags = ("entry=MultiHead",)
    found = shared_engine.grade("qkv_attention", text, attempt="mine.py", reads=True, flags=flags)
    again = shared_engine.grade(
        "qkv_attention", text, attempt="mine.py", reads=True, flags=tuple(found.reading["flags"])
    )

    assert told(again) == told(found)
    assert [one.outcome for one in again.findings] == [one.outcome for one in found.findings]


def test_code_for_any_length_passes(shared_engine):
    text = (HEAD + OF_ANY_LENGTH + USER.replace("GIVEN", "x, memory, memory")).encode()

    assert shared_engine.grade("qkv_attention", text, attempt="mine.py", reads=True, flags=("entry=MultiHead",)).passed


def ids(report) -> list[str]:
    return [mistake.id for one in report.diagnosis for mistake in one.mistakes]


@pytest.mark.parametrize(
    ("words", "added", "is_wrong"),
    [
        ("mask: (batch, query_len, key_len), 0 hides", "", True),
        ("mask (Tensor): flags (B, T, T), 0 hides", "", True),
        ("mask: (batch, 1, query_len, key_len), 0 hides", "", False),
        ("mask: 0 hides\n        x: (batch, query_len, key_len)", "", False),
        ("mask: (batch, query_len, key_len), 0 hides", "mask = mask[:, None]\n            ", False),
        (
            "mask: (batch, query_len, key_len), 0 hides",
            "mask = mask[:, None] if mask.dim() == 3 else mask\n            ",
            False,
        ),
    ],
)
def test_a_mask_whose_promised_shape_does_not_fit_the_heads_is_named(words, added, is_wrong, shared_engine):
    text = OF_ANY_LENGTH.replace(
        "        B, T, E = query.shape\n", f'        """\n        {words}\n        """\n        B, T, E = query.shape\n'
    ).replace("scores = scores.masked", f"{added}scores = scores.masked")

    report = shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed != is_wrong, report.ungraded_because
    assert ids(report) == (["mask.broadcast"] if is_wrong else [])
    failed = [one.message for one in report.findings if one.property == "mask" and one.outcome == "failed"]
    assert ["the code documents mask as" in message for message in failed] == [True] * is_wrong


@pytest.mark.parametrize(
    ("words", "is_wrong"), [("# mask: (batch, Tq, Tk)", True), ("# mask: (batch, 1, Tq, Tk)", False)]
)
def test_a_shape_in_a_comment_beside_the_mask_counts_too(words, is_wrong, shared_engine):
    text = OF_ANY_LENGTH.replace("if mask is not None:", f"if mask is not None:  {words}")
    report = shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed != is_wrong, report.ungraded_because
    assert ids(report) == (["mask.broadcast"] if is_wrong else [])


@pytest.mark.parametrize("kata", ["qkv_attention"])
def test_a_softmax_under_the_condition_of_the_mask_is_named(kata, shared_engine):
    text = OF_ANY_LENGTH.replace("        weights = torch.softmax(scores, dim=-1)\n", "        weights = scores\n")
    text = text.replace(
        "scores = scores.masked_fill(mask == 0, -1e9)",
        "scores = scores.masked_fill(mask == 0, -1e9)\n            scores = torch.softmax(scores, dim=-1)",
    )
    report = shared_engine.grade(kata, (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"softmax.missing"}


def test_an_input_that_is_called_hidden_is_x_and_no_mask(shared_engine):
    text = OF_ANY_LENGTH.replace("query, key, value, mask=None", "hidden, attention_mask=None")
    for name in ("query", "key", "value"):
        text = text.replace(f"({name})", "(hidden)")
    text = text.replace("query.shape", "hidden.shape").replace("mask is not", "attention_mask is not")
    text = text.replace("(mask == 0", "(attention_mask == 0")

    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert "call=hidden=x,attention_mask=mask" in report.reading["flags"]
