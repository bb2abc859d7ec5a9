"""Masks, triangles and flags by what the code does with them, where names or comments would say something else."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_interfaces import ATTEND, HIDDEN_QUERIES
from tests.readings.test_kinds import HEAD

# A comment that was copied from where the mask was added; this code takes flags, and makes the addend itself.
FLAGS_MADE_AN_ADDEND = ATTEND.replace(
    '            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
    "            # Apply the attention mask is (precomputed for all layers in BertModel forward() function)\n"
    "            scores = scores + (1 - mask.unsqueeze(1)) * -10000.0\n",
)
# The key padding mask of four dimensions, or of two; the triangle that is cut is another one.
FUNCTION_OF_HEADS = """
class Attend(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.causal, self.mask = causal, None

    def later(self, n):
        if self.mask is None or self.mask.shape[-1] < n:
            self.mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self.mask[:n, :n]

    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            if mask.ndim != 4:
                mask = mask[:, None, None, :]
            scores = scores.masked_fill(~mask, -torch.finfo(scores.dtype).max)
        if self.causal:
            scores = scores.masked_fill(self.later(q.shape[-2]), -torch.finfo(scores.dtype).max)
        return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)
"""
FLAG_BY_THE_NAME_OF_AN_INPUT = """
class Attend(nn.Module):
    def __init__(self, embed_size, d_k):
        super().__init__()
        self.d_k = d_k
        self.query, self.keys = nn.Linear(embed_size, d_k), nn.Linear(embed_size, d_k)
        self.values, self.kept = nn.Linear(embed_size, d_k), None

    def forward(self, x, kv_store):
        q, k, v = self.query(x), self.keys(x), self.values(x)
        if kv_store and self.kept is not None:
            k, v = torch.cat([self.kept[0], k], dim=1), torch.cat([self.kept[1], v], dim=1)
        self.kept = (k.detach(), v.detach())
        scores = q @ k.transpose(1, 2) / math.sqrt(self.d_k)
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        return scores.softmax(dim=-1) @ v
"""
CAUSAL_BY_A_FLAG = """
def attend(q, k, v, is_causal=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if is_causal:
        later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(dim=-1) @ v
"""
MASK_THAT_NO_KATA_ASKS_FOR = """
class Attend(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.w_query, self.w_key, self.w_value = (nn.Linear(d_in, d_out) for _ in range(3))

    def forward(self, x, mask=None):
        scores = self.w_query(x) @ self.w_key(x).transpose(1, 2) / self.w_key.out_features**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return scores.softmax(dim=-1) @ self.w_value(x)
"""
FIRST_STEP = """
def attention(Q, K, V):
    weights = F.softmax(torch.matmul(Q, K.t()) / K.shape[1] ** 0.5, dim=1)
    return torch.matmul(weights, V), weights
"""
# The parameter is called mask, and says only whether later keys are hidden.
MASK_THAT_IS_A_FLAG = ATTEND.replace("mask=None", "mask").replace(
    "        if mask is not None:\n            scores = scores.masked_fill(mask == 0,",
    "        if mask:\n            later = torch.ones(T, T, dtype=torch.bool).triu(1)\n"
    "            scores = scores.masked_fill(later,",
)
# As in a well-known model for long series: later keys are hidden where no mask is given, and only there.
TRIANGLE_IN_PLACE_OF_A_MASK = """
class Attend(nn.Module):
    def __init__(self, mask_flag=True, attention_dropout=0.1):
        super().__init__()
        self.mask_flag, self.dropout = mask_flag, nn.Dropout(attention_dropout)

    def forward(self, queries, keys, values, attn_mask):
        B, L, H, E = queries.shape
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if self.mask_flag:
            if attn_mask is None:
                attn_mask = torch.ones(B, 1, L, L, dtype=torch.bool).triu(1)
            scores.masked_fill_(attn_mask, -float("inf"))
        weights = self.dropout(torch.softmax(scores / math.sqrt(E), dim=-1))
        return torch.einsum("bhls,bshd->blhd", weights, values).contiguous(), None
"""
CUT_OUT_OF_THE_MASK = ATTEND.replace(
    "if mask is not None:\n",
    "if mask is None:\n            mask = torch.ones_like(scores)\n        mask = mask.tril()\n        if True:\n",
)
PAIRS = {
    "a_triangle_that_is_cut_out_of_the_mask": (
        "mha",
        CUT_OUT_OF_THE_MASK,
        "mask.tril()",
        "mask.tril(1)",
        {"mask.shifted"},
    ),
    "a_mask_that_is_a_flag": ("mha", MASK_THAT_IS_A_FLAG, ".triu(1)", ".triu(2)", {"mask.shifted", "mask.off_by_one"}),
    "a_triangle_in_place_of_a_mask": (
        "sdpa",
        TRIANGLE_IN_PLACE_OF_A_MASK,
        " / math.sqrt(E)",
        "",
        {"scale.missing"},
    ),
    "flags_made_an_addend": ("mha", FLAGS_MADE_AN_ADDEND, "* -10000.0", "* 0.0", {"mask.lost", "mask.zero_fill"}),
    "the_mask_of_the_caller_beside_its_own": ("sdpa", FUNCTION_OF_HEADS, "~mask", "mask", {"mask.inverted"}),
    "a_flag": ("self_attention", FLAG_BY_THE_NAME_OF_AN_INPUT, " / math.sqrt(self.d_k)", "", {"scale.missing"}),
    "a_triangle_by_a_flag": ("sdpa", CAUSAL_BY_A_FLAG, 'float("-inf")', "0.0", {"mask.zero_fill"}),
    "a_mask_of_tokens": ("mha", HIDDEN_QUERIES, "~both, -1e9", "~both, 0.0", {"mask.zero_fill"}),
    "two_dimensions_and_weights": ("sdpa", FIRST_STEP, " / K.shape[1] ** 0.5", "", {"scale.missing"}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_the_code_does_is_read_and_hides_no_mistake(name, shared_engine):
    slug, text, old, new, named = PAIRS[name]
    _, wrong = right_and_wrong(shared_engine, slug, text, old, new)

    if "mask.inverted" in named:  # nothing says what True means
        assert "mask.inverted" in " ".join(wrong.reading["notes"])
    else:
        assert told(wrong) & named


def test_a_mask_of_tokens_is_graded_when_it_is_said_by_hand_too(shared_engine):
    text = (HEAD + HIDDEN_QUERIES.replace("~both, -1e9", "~both, 1e-9")).encode()
    report = shared_engine.grade("mha", text, attempt="mine.py", reads=True, flags=("hides_queries=yes",))

    assert told(report) == {"mask.zero_fill"}
    compared = {one.property: one.outcome for one in report.findings}
    assert compared["masked_keys_do_not_matter"] == "failed"


def test_nan_gradients_of_queries_that_a_mask_of_tokens_hides_are_said(shared_engine):
    text = (HEAD + HIDDEN_QUERIES.replace("-1e9", 'float("-inf")')).encode()
    report = shared_engine.grade("mha", text, attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert any("its gradients are NaN" in note for note in report.reading["notes"])


def test_a_mask_that_the_kata_does_not_have_is_said_not_to_be_tried(shared_engine):
    text = (HEAD + MASK_THAT_NO_KATA_ASKS_FOR).encode()
    report = shared_engine.grade("self_attention", text, attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert "its mask is not tried (mask)" in report.reading["departures"]


def test_a_dropout_that_knows_no_mode_is_named_where_the_kata_has_no_dropout(shared_engine):
    text = CAUSAL_BY_A_FLAG.replace("scores.softmax(dim=-1) @ v", "F.dropout(scores.softmax(dim=-1), 0.2) @ v")
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"dropout.always"}
    assert report.diagnosis[0].mistakes[0].line == HEAD.count("\n") + text[: text.index("F.dropout")].count("\n") + 1


def test_code_that_raises_for_some_inputs_and_that_nothing_explains_has_no_verdict(shared_engine):
    text = ATTEND.replace("B, T, E = x.shape\n", "B, T, E = x.shape\n        [first, second] = x\n")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome is None or report.ungraded_because
    assert "too many values to unpack" in report.ungraded_because


def test_code_that_needs_a_mask_is_read_as_a_kata_that_has_one_and_its_mistake_is_named(tmp_path):
    text = MASK_THAT_NO_KATA_ASKS_FOR.replace("mask=None", "keys")
    text = text.replace("        if mask is not None:\n    ", "").replace("mask == 0", "~keys.bool()[:, None]")
    mine = tmp_path / "mine.py"
    told_of = []
    for each in (text.replace("keys", "pad_mask"), text.replace("keys", "pad_mask").replace("dim=-1", "dim=-2")):
        mine.write_text(HEAD + each)
        told_of.append(
            subprocess.run(
                [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
            )
        )

    right, wrong = told_of
    assert "It could not be read so. The class Attend looks like mha" in right.stderr
    assert right.returncode == 0, right.stdout
    assert wrong.returncode == 1
    assert "(softmax.query_axis)" in wrong.stdout


CUT_WITH_A_MASK = """
class Attend(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return torch.softmax(scores, dim=-1) @ v
"""


def test_a_graph_that_only_a_mask_cuts_is_found(shared_engine):
    _, wrong = right_and_wrong(shared_engine, "sdpa", CUT_WITH_A_MASK, "scores.masked_fill", "scores.data.masked_fill")

    assert told(wrong) == {"gradient.detached"}
    assert {one.property for one in wrong.findings if one.outcome == "failed"} == {"gradients_with_mask"}


OF_A_LOSS = ATTEND.replace(
    "        scores =",
    "        # 1 for a token whose prediction is ignored, 0 for one that counts\n        scores =",
    1,
)


def test_words_that_do_not_name_the_mask_do_not_make_right_code_wrong(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "mha", OF_A_LOSS, "mask == 0", "mask == 1")
    scaled = OF_A_LOSS.replace(" / math.sqrt(self.d)", "")
    both = shared_engine.grade("mha", (HEAD + scaled).encode(), attempt="mine.py", reads=True)

    assert any(
        "'1 for a token whose prediction is ignored, 0 for one that counts'" in note and "mask.inverted" in note
        for note in right.reading["notes"]
    )
    assert wrong.outcome == "passed"  # as the words have it
    assert not any("mask.inverted" in note for note in wrong.reading["notes"])
    assert told(both) == {"scale.missing"}


REPEATED = ATTEND.replace("width, n_heads):", "width, n_heads, seq_len):").replace(
    "self.h, self.d =", "self.seq_len = seq_len\n        self.h, self.d ="
)
REPEATED = REPEATED.replace(
    "scores.masked_fill(mask == 0,",
    "scores.masked_fill(mask[:, None, None].repeat(1, self.h, self.seq_len, 1) == 0,",
)


@pytest.mark.parametrize("kept", ["", "weights = weights.to(torch.zeros(1, 1, self.seq_len, self.seq_len))"])
def test_code_that_has_one_length_where_it_gets_a_mask_is_asked_for_that(kept, shared_engine):
    text = REPEATED.replace(
        "        out = self.w_o", f"        {kept}\n        v = v.to(weights)\n        out = self.w_o"
    )
    right, wrong = right_and_wrong(shared_engine, "mha", text, " / math.sqrt(self.d)", "")

    assert "one_length=yes" in right.reading["flags"]
    assert any("mask.fixed_size" in note for note in right.reading["notes"]) or kept
    assert told(wrong) == {"scale.missing"}


WHOLE_TRIANGLE = """
class Attend(nn.Module):
    def __init__(self, width, n_heads, max_len):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("later", torch.triu(torch.ones(SIDE, SIDE), diagonal=1).bool())

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(self.d)).masked_fill(self.later, float("-inf"))
        return self.w_o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""


@pytest.mark.parametrize(("side", "length"), [("max_len", "L"), ("max_len - 1", "L+1"), ("max_len + 1", "L-1")])
def test_code_whose_triangle_has_one_length_is_built_for_the_length_that_it_takes(side, length, shared_engine):
    """Its inputs may be one shorter than what it is built for: the last token is what they predict."""
    text = WHOLE_TRIANGLE.replace("SIDE", side)
    right, wrong = right_and_wrong(shared_engine, "mha", text, "diagonal=1", "diagonal=0")

    assert {"one_length=yes", f"build=width=E,n_heads=H,max_len={length}"} <= set(right.reading["flags"])
    assert wrong.outcome == "failed"
    again = shared_engine.grade(
        "mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=tuple(right.reading["flags"])
    )
    assert again.outcome == "passed"


WIDENED_TWICE = """
class Attend(nn.Module):
    def __init__(self, embed_dim, n_heads):
        super().__init__()
        self.h, self.d = n_heads, embed_dim // n_heads
        self.query, self.key = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.value, self.proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key, value, attn_mask=None):
        N, S, E = query.shape
        T = value.shape[1]
        q = self.query(query).view(N, S, self.h, self.d).transpose(1, 2)
        k = self.key(key).view(N, T, self.h, self.d).transpose(1, 2)
        v = self.value(value).view(N, T, self.h, self.d).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d)
        if attn_mask is not None:
            mask = attn_mask.to(dtype=torch.bool)
            scores = scores.masked_fill(~mask.unsqueeze(0).unsqueeze(0), float("-inf"))
        out = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.proj(out.transpose(1, 2).reshape(N, S, E))
"""


def test_code_that_takes_masks_of_shapes_that_it_is_not_meant_for_is_asked_for_every_shape(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "qkv_attention", WIDENED_TWICE, "~mask.unsqueeze", "mask.unsqueeze")

    assert "shape=(T, T)" in right.reading["flags"]
    assert "mask=hide" in wrong.reading["flags"]
