"""Right code that was once called wrong, as it was read wrong; and what is said where a failure is no verdict."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.test_conventions_of_blocks import BLOCK
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference
from attn_kata.readings.candidates import masks

EACH_IN_TURN = """
class OneHead(nn.Module):
    def __init__(self, embed_size, n_heads):
        super().__init__()
        self.size = embed_size // n_heads
        self.Ukqv = nn.Linear(embed_size, 3 * self.size)

    def forward(self, z):
        kqv = self.Ukqv(z).reshape(*z.shape[:2], self.size, 3)
        k, q, v = kqv[..., 0], kqv[..., 1], kqv[..., 2]
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.size), dim=-1) @ v


class Heads(nn.Module):
    def __init__(self, embed_size, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([OneHead(embed_size, num_heads) for _ in range(num_heads)])
        self.together = nn.Linear(embed_size, embed_size)

    def forward(self, z):
        return self.together(torch.cat([head(z) for head in self.heads], -1))
"""
OTHER_WORDS = """
class Rotary:
    @staticmethod
    def scaled(base, scaling=True):
        \"\"\"scaling (bool): use the other base if True.\"\"\"
        return 2 * base if scaling else base

    @staticmethod
    def apply(x, cos, sin):
        assert x.shape[-1] % 2 == 0, "the size of a head must be even"
        first, second = x.chunk(2, dim=-1)
        base = Rotary.scaled(1.0)
        return (x * cos + torch.cat((-second, first), dim=-1) * sin) * base


class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask, cos, sin):
        B, T, E = x.shape
        q, k, v = (one(x).view(B, T, self.h, self.d).transpose(1, 2) for one in (self.w_q, self.w_k, self.w_v))
        q, k = Rotary.apply(q, cos, sin), Rotary.apply(k, cos, sin)
        scores = q @ k.transpose(-2, -1) / self.d**0.5
        scores = scores.masked_fill(mask[:T, :T], -torch.inf)
        return self.w_o((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""
ONE_INPUT = ATTEND.replace("def forward(self, x, mask=None):", "def forward(self, z):").replace("x.shape", "z.shape")
ONE_INPUT = (
    ONE_INPUT.replace("(w(x)", "(w(z)").replace("if mask is not None:", "if False:").replace("mask == 0", "z == 0")
)
IN_A_LIST = """
class Heads(nn.Module):
    def __init__(self, head_num, dk_model, dv_model):
        super().__init__()
        self.d = dk_model // head_num
        self.Wqs, self.Wks, self.Wvs = (
            nn.ParameterList([nn.Parameter(torch.randn(dk_model, self.d)) for _ in range(head_num)]) for _ in range(3)
        )
        self.Wo = nn.Linear(dv_model, dv_model)

    def forward(self, Q, K, V):
        found = []
        for of_q, of_k, of_v in zip(self.Wqs, self.Wks, self.Wvs):
            q, k, v = Q @ of_q, K @ of_k, V @ of_v
            found.append(torch.softmax(q @ k.transpose(1, 2) / math.sqrt(self.d), dim=-1) @ v)
        return self.Wo(torch.cat(found, dim=-1))
"""
GIVEN_LAYERS = """
class AttendLayer(nn.Module):
    def __init__(self, d_model, h, qkv_fc, out_fc):
        super().__init__()
        self.d_model, self.h = d_model, h
        self.q_fc, self.k_fc, self.v_fc = (copy.deepcopy(qkv_fc) for _ in range(3))
        self.out_fc = out_fc

    def forward(self, *given, query, key, value):
        q, k, v = self.q_fc(query), self.k_fc(key), self.v_fc(value)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]), dim=-1)
        return self.out_fc((weights @ v).transpose(1, 2).flatten(2))
"""
POSITIONS = """
class RotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, position_ids):
        angles = position_ids[..., None] * torch.ones(self.dim)
        return angles.cos(), angles.sin()


def apply_rotary(q, k, cos, sin):
    return q * cos, k * cos


class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))
        self.rotary_emb = RotaryEmbedding(self.d)

    def forward(self, x, attention_mask=None, position_ids=None):
        # attention_mask: 0 = attend, large negative = block
        B, T, E = x.shape
        q, k, v = (one(x).view(B, T, self.h, self.d).transpose(1, 2) for one in (self.w_q, self.w_k, self.w_v))
        cos, sin = self.rotary_emb(v, position_ids)
        q, k = apply_rotary(q, k, cos, sin)
        scores = q @ k.transpose(-2, -1) / self.d**0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        return self.w_o((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""
RIGHT = {
    "q_k_and_v_of_a_head_in_turn": ("mha", EACH_IN_TURN, " / math.sqrt(self.size)", "", "scale.missing"),
    "words_about_something_else": ("mha", OTHER_WORDS, " / self.d**0.5", "", "scale.missing"),
    "one_input_with_the_name_of_a_context": ("mha", ONE_INPUT, "dim=-1", "dim=-2", "softmax.query_axis"),
    "parameters_in_a_list": ("qkv_attention", IN_A_LIST, "K @ of_k", "K @ of_q", "project.query_for_key"),
    "layers_that_are_given": (
        "qkv_attention",
        GIVEN_LAYERS,
        "sqrt(k.shape[-1])",
        "sqrt(self.d_model)",
        "scale.embed_dim",
    ),
    "angles_without_positions": ("mha", POSITIONS, "dim=-1) @ v", "dim=-2) @ v", "softmax.query_axis"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_code_passes_and_its_mistakes_are_named(name, shared_engine):
    slug, text, old, new, mistake = RIGHT[name]
    text = "import copy\n" + HEAD + text
    assert text.count(old) == 1
    told = inference.kata_of(text.encode())
    right, wrong = (
        shared_engine.grade(slug, each.encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(old, new))
    )

    assert told is not None
    assert told[0] == slug
    assert right.outcome == "passed", right.ungraded_because
    assert mistake in [one.id for found in wrong.diagnosis for one in found.mistakes]


@pytest.mark.parametrize("scale", [" / self.d**0.5", ""])
def test_a_condition_of_the_code_is_no_verdict(scale, shared_engine):
    text = ATTEND.replace("B, T, E = x.shape", "B, T, E = x.shape\n        assert self.d != 5, 'of another size'")
    text = text.replace(" / math.sqrt(self.d)", scale)
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "of another size" in report.ungraded_because


@pytest.mark.parametrize("where", ["self.h, self.d =", "B, T, E = x.shape"])
@pytest.mark.parametrize(
    "condition", ["assert self.d % 2 == 0", "if self.d % 2:\n            raise ValueError('an even size')"]
)
def test_code_for_heads_of_an_even_size_is_asked_for_these(where, condition, shared_engine):
    line = next(line.strip() for line in ATTEND.split("\n") if where in line)
    right = ATTEND.replace(line, f"{line}\n        {condition}")
    wrong = right.replace(" / math.sqrt(self.d)", "")
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True) for text in (right, wrong)
    ]

    assert reports[0].outcome == "passed", reports[0].ungraded_because
    assert "only heads of an even size" in reports[0].reading["departures"]
    assert [one.id for found in reports[1].diagnosis for one in found.mistakes] == ["scale.missing"]


@pytest.mark.parametrize(
    "condition",
    [
        'assert self.d % 8 == 0, "must be divisible by 8"',
        'if self.d % 8:\n            raise ValueError(f"the size of a head must be a multiple of 8, got {self.d}")',
        "assert self.d % 24 == 0",
    ],
)
@pytest.mark.parametrize("where", ["self.h, self.d =", "B, T, E = x.shape"])
def test_code_for_multiples_of_a_size_is_asked_for_these(where, condition, shared_engine):
    line = next(line.strip() for line in ATTEND.split("\n") if where in line)
    right = ATTEND.replace(line, f"{line}\n        {condition}")
    report = shared_engine.grade("mha", (HEAD + right).encode(), attempt="mine.py", reads=True)
    flags = tuple(report.reading["flags"])
    typed_back = shared_engine.grade("mha", (HEAD + right).encode(), attempt="mine.py", reads=True, flags=flags)

    assert report.outcome == typed_back.outcome == "passed", report.ungraded_because
    assert f"multiple={24 if '24' in condition else 8}" in flags
    assert any("only heads of a size that is a multiple of" in one for one in report.reading["departures"])
    for old, new, mistake in (
        ("math.sqrt(self.d)", "math.sqrt(E)", "scale.embed_dim"),
        ("view(B, T, self.h, -1).transpose(1, 2)", "view(B, self.h, T, -1)", "split.no_transpose"),
        ("mask == 0", "mask != 0", "mask.inverted"),
    ):
        assert right.count(old) == 1
        text = right.replace(old, new).replace("mask=None):", "keep_mask=None):\n        mask = keep_mask")
        wrong = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        assert [one.id for found in wrong.diagnosis for one in found.mistakes] == [mistake]


def test_numbers_that_no_known_mistake_explains_are_no_verdict(shared_engine):
    """They may be those of a right code that was read wrong. The report says what does not hold, and what to do."""
    strange = "(scores + scores.cos())"
    apart = ATTEND.replace("F.softmax(scores", f"F.softmax({strange}")
    cut = ATTEND.replace(
        "self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)",
        "self.qkv = nn.Linear(width, 3 * width)",
    ).replace("self.w_v, self.w_o = nn.Linear(width, width), nn", "self.w_o = nn")
    cut = cut.replace(
        "(w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))",
        "self.qkv(x).view(B, T, self.h, 3, -1).permute(3, 0, 2, 1, 4)",
    )
    wrong = cut.replace("F.softmax(scores", f"F.softmax({strange}")
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (apart, cut, wrong)
    ]

    assert [one.outcome for one in reports] == ["ungraded", "passed", "ungraded"]
    assert "under this reading 'values' does not hold" in reports[0].ungraded_because
    assert "add --read sure=yes" in reports[0].ungraded_because
    assert "--read fused=by_head:q,k,v" in reports[2].ungraded_because


def test_code_that_no_known_mistake_explains_is_graded_as_an_attempt_with_its_adapter(tmp_path):
    strange = ATTEND.replace("F.softmax(scores", "F.softmax(scores + scores.cos()")
    mine, attempt = tmp_path / "mine.py", tmp_path / "attempt.py"
    mine.write_text(HEAD + strange)

    def grade(*arguments):
        command = [sys.executable, "-m", "attn_kata", "grade", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    read = grade(mine, "--write-adapter", attempt)
    graded = grade(attempt, "--kata", "mha", "--strict")

    assert read.returncode == 3, read.stdout
    assert graded.returncode == 1, graded.stdout
    assert graded.stdout.startswith("FAILED  mha")


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("# mask: 0 = attend, large negative = block", "additive"),
        ("# mask: 0 或 -inf", "additive"),
        ("# entries of the mask with 0 are masked and padded with -inf", "keep"),
        ("# mask: positions with 0 are masked out with -1e9", "keep"),
        ("# in the mask real tokens come with 0 and padding tokens with a large negative number", "additive"),
        ("# mask: 0 means visible, -inf means hidden", "additive"),
        ("# mask: 0 = hidden, 1 = visible", "keep"),
        ("# mask == 0 marks the positions that are ignored", "keep"),
        ("# mask: False indicates a hidden key", "keep"),
        ("# mask: (B, 1, 1, regions), True for regions that are zero padding", "hide"),
        ("# mask: padding elements are indicated by 1s", "hide"),
        ("# nothing: a matrix of zeros used in the attention", None),
        ("# mask: True marks tokens that are never visible to anybody", "hide"),
        ("# mask: True for positions whose use is disallowed", "hide"),
        ("# mask: True = a position that must stay unseen", "hide"),
        ('# the mask; make sure of width % h == 0, "width must be divisible by h"', None),
        ("# the encoder block with the 2 sublayers: 1) attention with the mask 2) the mlp", None),
    ],
)
def test_what_words_say_of_a_mask_with_a_number_for_each_meaning(words, meaning):
    said = masks.documented(f"def attend(q, k, v, mask):\n    {words}\n", "mask")

    assert (None if said is None else said.meaning) == meaning


# Counts its tiles of keys by a number that it must be told, and writes its result in place.
TILES = """
def tiled_attention_forward(query, key, value, Br: int, Bc: int):
    assert query.ndim == 3, "(B, N, d)"
    out = torch.zeros(*query.shape[:2], value.shape[-1], dtype=query.dtype)
    total = torch.zeros(*query.shape[:2], 1, dtype=query.dtype)
    top = torch.full_like(total, float("-inf"))
    for i in range(0, query.shape[1], Br):
        for j in range(0, key.shape[1], Bc):
            scores = query[:, i : i + Br] @ key[:, j : j + Bc].mT / query.shape[-1] ** 0.5
            highest = torch.maximum(top[:, i : i + Br], scores.amax(-1, keepdim=True))
            weights, before = torch.exp(scores - highest), torch.exp(top[:, i : i + Br] - highest)
            joined = before * out[:, i : i + Br] + weights @ value[:, j : j + Bc]
            total[:, i : i + Br] = before * total[:, i : i + Br] + weights.sum(-1, keepdim=True)
            top[:, i : i + Br], out[:, i : i + Br] = highest, joined
    return out / total
"""
BY_HAND = """

def tiled_attention_backward(grad, query, key, value, Br: int, Bc: int):
    return grad, grad, grad
"""


def test_what_autograd_cannot_go_through_is_no_verdict_beside_a_backward_by_hand(shared_engine):
    by_hand, alone = (
        shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (TILES + BY_HAND, TILES)
    )

    assert by_hand.passed, by_hand.ungraded_because
    assert any("The file has a backward of its own" in note for note in by_hand.reading["notes"])
    assert "call=query=q,key=k,value=v,Br=2,Bc=2" in by_hand.reading["flags"]
    assert {mistake.id for one in alone.diagnosis for mistake in one.mistakes} == {"gradient.in_place"}


# Another path of the code calls what is ready-made; one is chosen by name.
OPTIMIZED = """
class DotProduct(nn.Module):
    def __init__(self, optimized=True):
        super().__init__()
        self.optimized = optimized

    def forward(self, queries, keys, values):
        if self.optimized:
            return F.scaled_dot_product_attention(queries, keys, values)
        return torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1) @ values


class Other(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.attention = nn.MultiheadAttention(embed_dim, 1, batch_first=True)

    def forward(self, query, key, value):
        return self.attention(query, key, value)
"""


def test_a_path_that_is_not_ready_made_is_taken(shared_engine):
    report = shared_engine.grade("sdpa", (HEAD + OPTIMIZED).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading["entry"] == "DotProduct"


def test_a_ready_made_attention_in_the_place_of_what_could_not_be_read_is_no_verdict(shared_engine):
    unread = OPTIMIZED.replace("self.optimized = optimized", "self.optimized = open('missing.txt').read()")
    report = shared_engine.grade("sdpa", (HEAD + unread).encode(), attempt="mine.py", reads=True)
    named = shared_engine.grade("sdpa", (HEAD + unread).encode(), attempt="mine.py", reads=True, flags=("entry=Other",))

    assert report.outcome == "ungraded"
    assert named.outcome == "failed"


SCALE_IN_PLACE = """
class DotProduct(nn.Module):
    def forward(self, q, k, v, scale=None, attn_mask=None):
        scores = torch.bmm(q, k.transpose(1, 2))
        if scale:
            scores *= scale
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, -1e9)
        return torch.bmm(torch.softmax(scores, dim=2), v)
"""


def test_a_scale_of_the_call_may_be_applied_in_place(shared_engine):
    report = shared_engine.grade("sdpa", (HEAD + SCALE_IN_PLACE).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert any("scale=1/sqrt(D)" in flag for flag in report.reading["flags"])


def test_a_width_of_which_none_is_the_default_may_be_more_than_one_size(shared_engine):
    text = ATTEND.replace("def __init__(self, width, n_heads):", "def __init__(self, width, n_heads, input_dim=None):")
    text = text.replace(
        "        super().__init__()\n",
        "        super().__init__()\n        a, b = (1, 2) if input_dim is None else input_dim\n",
        1,
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because


NAMES_OF_THE_CONTRACT = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads=4, return_scores=False):
        super().__init__()
        self.n_heads, self.d_k, self.return_scores = n_heads, d_model // n_heads, return_scores
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (one(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for one in (self.q_proj, self.k_proj, self.v_proj))
        scores = torch.softmax(q @ k.transpose(-2, -1) / self.d_k**0.5, dim=-1)
        out = self.o_proj((scores @ v).transpose(1, 2).flatten(2))
        if self.return_scores:
            return out, scores
        return out
"""
GROUPS_OF_ANOTHER_CLASS = "NUM_KV_HEADS = 2\n" + ATTEND + "\n\nclass Other:\n    groups = NUM_KV_HEADS\n"


@pytest.mark.parametrize("name", ["contract", "groups"])
def test_what_is_not_meant_for_a_contract_is_read(name, tmp_path):
    """A third argument that is no dropout; a number of groups at module level, that the attention does not read."""
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + {"contract": NAMES_OF_THE_CONTRACT, "groups": GROUPS_OF_ANOTHER_CLASS}[name])
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )

    assert (done.returncode, "RIGHT, AS READ  mha" in done.stdout) == (0, True), done.stdout


def test_an_attribute_that_only_a_comment_sets_is_never_set(shared_engine):
    text = ATTEND.replace("self.h, self.d =", "# self.depth = width // n_heads\n        self.h, self.d =")
    text = text.replace("math.sqrt(self.d)", "math.sqrt(self.depth)")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert "no attribute 'depth'" in next(one.message for one in report.findings if one.outcome == "failed")


THREE_FOR_ONE = ATTEND.replace("def forward(self, x, mask=None):", "def forward(self, query, key, value):").replace(
    "B, T, E = x.shape", "assert query is key is value\n        x, mask = query, None\n        B, T, E = x.shape"
)


@pytest.mark.parametrize("softmax", ["dim=-1", "dim=-2"])
def test_code_that_takes_only_one_input_three_times_is_read_as_less_and_passes_or_has_no_verdict(softmax, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + THREE_FOR_ONE.replace("dim=-1", softmax))
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )

    assert done.returncode == (0 if softmax == "dim=-1" else 3), done.stdout
    assert "looks like mha, so it is read as mha" in done.stderr or done.returncode


ONE_OF_THEM = """
class OneOfThem(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, size) for _ in range(3))

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


class Heads(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        KEPT
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return self.out(torch.cat([head(x) for head in self.heads], dim=-1))
"""
EACH = "OneOfThem(width, width // n_heads)"
KEPT = {
    "a_list": f"self.heads = [{EACH} for _ in range(n_heads)]",
    "appended": f"self.heads = []\n        for _ in range(n_heads):\n            self.heads.append({EACH})",
    "a_list_of_modules": f"self.heads = nn.ModuleList([{EACH} for _ in range(n_heads)])",
    "known_beside": f"self.heads = [{EACH} for _ in range(n_heads)]\n        self.known = nn.ModuleList(self.heads)",
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("scale", [" / math.sqrt(q.shape[-1])", ""])
def test_heads_in_a_plain_list_are_named_and_read_all_the_same(name, scale, shared_engine):
    text = ONE_OF_THEM.replace("KEPT", KEPT[name]).replace(" / math.sqrt(q.shape[-1])", scale)
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    expected = {"module.unregistered"} if name in ("a_list", "appended") else set()
    expected |= set() if scale else {"scale.missing"}
    assert {one.id for found in report.diagnosis for one in found.mistakes} == expected
    assert report.outcome == ("failed" if expected else "passed")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.rotary_emb(v, position_ids)", "self.rotary_emb(v, position_ids, device=x.device)"),
        ("angles = position_ids[..., None]", "angles = positions[..., None]"),
        ("self.rotary_emb(v, position_ids)", "self.rotary_emb(v, torch.arange(T), 1)"),
    ],
)
def test_a_table_of_angles_that_cannot_run_is_no_right_code(old, new, shared_engine):
    assert POSITIONS.count(old) == 1
    report = shared_engine.grade("mha", (HEAD + POSITIONS.replace(old, new)).encode(), attempt="mine.py", reads=True)

    assert report.outcome != "passed"


OWN_LINEAR = """
class Linear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(in_features, out_features))
        self.BIAS = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        return x @ self.weights + self.BIAS

"""


@pytest.mark.parametrize("bias", ["bias", "b", "biases"])
def test_a_bias_beside_a_matrix_of_any_name_is_laid_too(bias, shared_engine):
    text = OWN_LINEAR.replace("BIAS", bias) + ATTEND.replace("nn.Linear", "Linear")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", [one.message for one in report.findings if one.outcome == "failed"]


def test_the_contracts_names_with_a_mask_that_must_be_given_are_read(tmp_path):
    text = NAMES_OF_THE_CONTRACT.replace("n_heads=4, return_scores=False", "n_heads").replace(
        ", self.return_scores = n_heads, d_model // n_heads, return_scores", " = n_heads, d_model // n_heads"
    )
    text = text.replace("        if self.return_scores:\n            return out, scores\n", "").replace(
        "forward(self, x)", "forward(self, x, mask)"
    )
    text = text.replace(
        "scores = torch.softmax(q @ k.transpose(-2, -1) / self.d_k**0.5, dim=-1)",
        "scores = q @ k.transpose(-2, -1) / self.d_k**0.5\n"
        "        scores = torch.softmax(scores.masked_fill(mask == 0, -torch.inf), dim=-1)",
    )
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + text)
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )

    assert (done.returncode, "RIGHT, AS READ  mha" in done.stdout) == (0, True), done.stdout


RANK_OF_FOUR = ATTEND.replace(
    'scores = scores.masked_fill(mask == 0, float("-inf"))',
    "mask = mask.unsqueeze(1)\n            if len(mask.shape) == 4:\n"
    '                scores = scores.masked_fill(mask == 0, float("-inf"))',
)
ONE_WITH_A_MASK = ATTEND.replace("width, n_heads", "width").replace(
    "self.h, self.d = n_heads, width // n_heads", "self.d = width"
)
ONE_WITH_A_MASK = ONE_WITH_A_MASK.replace(".view(B, T, self.h, -1).transpose(1, 2)", "").replace(
    "(weights @ v).transpose(1, 2).reshape(B, T, E)", "weights @ v"
)


def test_a_mask_that_is_widened_before_its_dimensions_are_asked_is_given_as_it_is(shared_engine):
    report = shared_engine.grade("mha", (HEAD + RANK_OF_FOUR).encode(), attempt="mine.py", reads=True)

    assert (report.outcome, "shape=(B, T, T)" in report.reading["flags"]) == ("passed", True)


def test_one_head_with_a_mask_and_an_output_layer_is_read_with_both(shared_engine):
    lost = ONE_WITH_A_MASK.replace("scores = scores.masked_fill", "scores.masked_fill")
    told = [inference.kata_of((HEAD + text).encode())[0] for text in (ONE_WITH_A_MASK, lost)]
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (ONE_WITH_A_MASK, lost)
    ]

    assert told == ["mha", "mha"]
    assert reports[0].outcome == "passed"
    assert [one.id for found in reports[1].diagnosis for one in found.mistakes] == ["mask.lost"]


def test_numbers_with_a_parameter_that_is_not_laid_are_no_verdict(shared_engine):
    """A bias by a name that nobody expects: its numbers have a part in the result."""
    text = OWN_LINEAR.replace("BIAS", "offset") + ATTEND.replace("nn.Linear", "Linear")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "w_q.offset" in report.ungraded_because


@pytest.mark.parametrize("norms", [True, False])
def test_a_scale_of_one_beside_norms_of_q_and_k_is_no_verdict(norms, shared_engine):
    text = ATTEND.replace(
        "        self.w_q,",
        "        self.q_norm, self.k_norm = nn.LayerNorm(self.d), nn.LayerNorm(self.d)\n        self.w_q,",
    )
    text = text.replace("        scores = q", "        q, k = self.q_norm(q), self.k_norm(k)\n        scores = q")
    text = (text if norms else ATTEND).replace(" / math.sqrt(self.d)", "")
    merged = text.replace("(weights @ v).transpose(1, 2)", "(weights @ v)")  # which is wrong with norms and without
    report, of_two = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True) for each in (text, merged)
    )

    assert report.outcome == ("ungraded" if norms else "failed")
    assert of_two.outcome == "failed"
    assert "merge.no_transpose" in [one.id for found in of_two.diagnosis for one in found.mistakes]


@pytest.mark.parametrize(("said", "outcome"), [("traspose(-2, -1)", "failed"), ("update(-2, -1)", "ungraded")])
def test_what_a_tensor_lacks_is_a_mistake_where_it_is_misspelt(said, outcome, shared_engine):
    text = ATTEND.replace("k.transpose(-2, -1)", f"k.{said}")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == outcome


HANDS_ON = """
class Base(nn.Module):
    def __init__(self, width, heads, depth):
        super().__init__()
        self.heads = heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))


class Noisy(nn.Module):
    def __init__(self, k, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.k = k


class NoisyAttention(Noisy, Base):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm = nn.LayerNorm(1)

    def forward(self, query, key, value):
        q, k, v = (
            w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2))
"""


def test_a_constructor_that_hands_on_what_it_gets_is_not_blamed_for_what_it_was_not_given(shared_engine):
    report = shared_engine.grade("qkv_attention", (HEAD + HANDS_ON).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "missing 3 required positional arguments" in report.ungraded_because


def test_a_rotation_that_is_kept_in_a_buffer_is_not_blamed_for_what_stands_for_it(shared_engine):
    text = ATTEND.replace(
        "super().__init__()", "super().__init__()\n        self.register_buffer('cos', precompute_freqs_cis(8, 64))"
    )
    table = (
        "\n\ndef precompute_freqs_cis(dim, end):\n    angle = torch.outer(torch.arange(end), torch.ones(dim // 2))\n"
    )
    table += "    return angle.cos()\n"
    report = shared_engine.grade("mha", (HEAD + table + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome != "failed", report.diagnosis


def test_a_misspelt_import_is_a_mistake_of_the_code(shared_engine):
    text = ATTEND.replace("F.softmax(", "troch.softmax(")
    assert text != ATTEND
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["python.undefined_name"]


def test_a_gate_of_one_layer_whose_halves_are_not_known_is_no_missing_branch(shared_engine):
    gate = """
class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        inner = int(8 / 3 * width)
        self.fc1 = nn.Linear(width, 2 * inner, bias=False)
        self.fc2 = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        first, second = self.fc1(x).chunk(2, dim=-1)
        return self.fc2(first * torch.sigmoid(first) * second)
"""
    block = BLOCK.replace("n_heads, mlp_dim):", "n_heads):").replace(
        "nn.Sequential(nn.Linear(width, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, width))", "Gated(width)"
    )
    text = HEAD + gate + ATTEND + block
    report = shared_engine.grade("transformer_block", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome != "failed", report.diagnosis


def test_a_number_that_divides_the_scores_of_a_function_is_no_verdict(shared_engine):
    text = """
def attend(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1) / 8.0  # of heads with 64 features
    return F.softmax(scores, dim=-1) @ values
"""
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"


@pytest.mark.parametrize("softmax", ["scores", "F.softmax(scores, dim=-1)"])
def test_a_function_for_scores_or_weights_alone_is_no_verdict(softmax, shared_engine):
    text = f"""
def scaled(queries, keys):
    scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5
    return {softmax}
"""
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
