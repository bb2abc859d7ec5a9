"""Which definition of a file is graded: a part that is whole in itself, where what uses it cannot be read; no helper for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference
from attn_kata.readings.source import structure, syntax

# What is around the attention and cannot be built: it wants a checkpoint.
WRAPPER = """
class GridAttend(nn.Module):
    def __init__(self, checkpoint, width, n_heads):
        super().__init__()
        self.sizes = torch.load(checkpoint)
        self.attend = SelfAttend(width, n_heads)

    def forward(self, x):
        return self.attend(x)
"""
HEIR = """
class GridAttend(SelfAttend):
    def __init__(self, checkpoint):
        super().__init__(**torch.load(checkpoint))
"""
OF_THREE = """
class Classifier(nn.Module):
    def __init__(self, vocabulary, width, kernels=(2, 3)):
        super().__init__()
        self.sizes = torch.load(vocabulary)
        self.attend_queries = QueryAttend(width, 3)

    def forward(self, tokens):
        return self.attend_queries(tokens, tokens, tokens)
"""
QUERY_ATTEND = (
    ATTEND.replace("SelfAttend", "QueryAttend")
    .replace("(self, x, mask=None)", "(self, query, key, value)")
    .replace("B, T, E = x.shape", "B, T, E = query.shape")
    .replace(
        "(w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))",
        "(\n            w(x).view(B, x.shape[1], self.h, -1).transpose(1, 2)\n"
        "            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))\n        )",
    )
    .replace('        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', "")
)
# It multiplies heads itself: what is right in its part says nothing of it.
OWN_PRODUCT = WRAPPER.replace("self.attend(x)", "torch.matmul(self.attend(x), self.sizes)")


def grade(tmp_path, text):
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + text)
    return subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("around", [WRAPPER, HEIR], ids=["wrapper", "heir"])
def test_the_attention_in_a_wrapper_that_cannot_be_built_is_graded_and_said_to_be_a_part(around, tmp_path):
    right = grade(tmp_path, ATTEND + around)
    wrong = grade(tmp_path, ATTEND.replace(" / math.sqrt(self.d)", "") + around)

    assert right.returncode == 0, right.stdout
    assert "GridAttend, which uses it, could not be read: only SelfAttend is graded" in " ".join(right.stdout.split())
    assert wrong.returncode == 1
    assert "(scale.missing)" in wrong.stdout


NEEDS_ANOTHER_FILE = """
from models.coders import Encoder


class ForecastAttention(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.encoder = Encoder(input_size, hidden_size)
        self.attention = Score(hidden_size)

    def forward(self, x):
        outputs, state = self.encoder(x)
        return self.attention(state, outputs)


class Score(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.w1, self.w2 = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.v = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.v(torch.tanh(self.w1(query)[:, None] + self.w2(keys)))
        return (torch.softmax(scores, dim=1) * keys).sum(dim=1)
"""


def test_a_part_of_what_makes_a_layer_of_another_file_is_graded_as_its_own_kata(tmp_path):
    right = grade(tmp_path, NEEDS_ANOTHER_FILE)
    wrong = grade(tmp_path, NEEDS_ANOTHER_FILE.replace("dim=1) * keys", "dim=0) * keys"))

    assert right.returncode == 0, right.stdout + right.stderr
    assert "Only its part Score is graded, as additive_attention" in right.stderr
    assert wrong.returncode == 1


def test_the_attention_in_a_model_that_cannot_be_built_is_graded_as_its_own_kata(tmp_path):
    right = grade(tmp_path, QUERY_ATTEND + OF_THREE)
    wrong = grade(tmp_path, QUERY_ATTEND.replace("dim=-1", "dim=-2") + OF_THREE)

    assert right.returncode == 0, right.stdout + right.stderr
    assert wrong.returncode == 1
    assert "(softmax.query_axis)" in wrong.stdout


def test_a_part_of_what_multiplies_itself_does_not_stand_for_it(tmp_path):
    done = grade(tmp_path, ATTEND + OWN_PRODUCT)

    assert done.returncode == 3, done.stdout
    assert "GridAttend" in done.stdout


def test_a_softmax_from_another_file_is_no_kata_of_its_own(tmp_path):
    (tmp_path / "activations.py").write_text(
        "import torch\n\ndef softmax(x):\n    e = torch.exp(x - x.amax(-1, keepdim=True))\n"
        "    return e / e.sum(-1, keepdim=True)\n"
    )
    done = grade(
        tmp_path, "from activations import softmax\n" + ATTEND.replace("F.softmax(scores, dim=-1)", "softmax(scores)")
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "RIGHT, AS READ  mha" in done.stdout


def test_a_function_that_makes_q_k_and_v_is_not_taken_for_the_attention(tmp_path):
    makes = "\ndef qkv_attention_inputs(x, W_q, W_k, W_v):\n    return x @ W_q.mT, x @ W_k.mT, x @ W_v.mT\n"
    attends = "\n\ndef attend(q, k, v):\n    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v\n"
    right = grade(tmp_path, makes + attends)
    wrong = grade(tmp_path, makes + attends.replace(" / q.shape[-1] ** 0.5", ""))

    assert right.returncode == 0, right.stdout
    assert wrong.returncode == 1
    assert "(scale.missing)" in wrong.stdout


# It inherits from the plain attention, which is meant.
OTHER_KIND = """

class {kind}(SelfAttend):
    def forward(self, x, mask=None):
        return super().forward(x + self.slopes, mask)
"""


@pytest.mark.parametrize("kind", ["AlibiAttend", "RelativeAttention", "LocalSelfAttention", "FlashAttend"])
def test_an_attention_of_another_kind_does_not_go_before_the_plain_one_that_it_inherits_from(kind):
    found = list(inference.katas_of((HEAD + ATTEND + OTHER_KIND.format(kind=kind)).encode()))

    assert found[0][:2] == ("mha", "SelfAttend")


def test_a_heir_of_the_same_kind_goes_before_it():
    found = list(inference.katas_of((HEAD + ATTEND + OTHER_KIND.format(kind="MaskedAttend")).encode()))

    assert found[0][:2] == ("mha", "MaskedAttend")


SELF_AND_CROSS = """
class SelfAttention(nn.Module):
    def __init__(self, n_heads, d_embed):
        super().__init__()
        self.in_proj = nn.Linear(d_embed, 3 * d_embed)
        self.out_bias = nn.Linear(d_embed, d_embed)
        self.n_heads, self.d_head = n_heads, d_embed // n_heads

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (t.view(B, T, self.n_heads, self.d_head).transpose(1, 2) for t in self.in_proj(x).chunk(3, dim=-1))
        weights = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(B, T, E))


class CrossAttention(nn.Module):
    def __init__(self, n_heads, d_embed, d_cross):
        super().__init__()
        self.q_proj, self.out_proj = nn.Linear(d_embed, d_embed), nn.Linear(d_embed, d_embed)
        self.k_proj, self.v_proj = nn.Linear(d_cross, d_embed), nn.Linear(d_cross, d_embed)
        self.n_heads, self.d_head = n_heads, d_embed // n_heads

    def forward(self, x, y):
        q, k, v = (
            t.view(len(t), -1, self.n_heads, self.d_head).transpose(1, 2)
            for t in (self.q_proj(x), self.k_proj(y), self.v_proj(y))
        )
        weights = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(x.shape))
"""


def test_a_right_one_does_not_hide_that_the_likeliest_raises_by_its_own_mistake(shared_engine):
    report = shared_engine.grade("mha", (HEAD + SELF_AND_CROSS).encode(), attempt="mine.py", reads=True)

    assert report.reading["entry"] == "SelfAttention"
    assert {mistake.id for one in report.diagnosis for mistake in one.mistakes} == {"python.undefined_name"}


UTIL = """
class Util:
    @staticmethod
    def attention(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(dim=-1) @ value

    @staticmethod
    def clones(module, count):
        return nn.ModuleList([module for _ in range(count)])
"""


def graded_as_a_person_does(path, *flags):
    command = [sys.executable, "-m", "attn_kata", "grade", str(path), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("flags", [(), ("--class", "Util.attention")])
def test_a_static_method_is_graded_and_its_mistake_named_at_its_line(tmp_path, flags):
    right, wrong, adapted = (tmp_path / name for name in ("util.py", "wrong.py", "adapted.py"))
    right.write_text(HEAD + UTIL)
    wrong.write_text(HEAD + UTIL.replace("math.sqrt(query.size(-1))", "query.size(-1)"))
    passed, failed = (graded_as_a_person_does(path, *flags) for path in (right, wrong))
    adapter = graded_as_a_person_does(right, *flags, "--write-adapter", str(adapted))

    assert (passed.returncode, adapter.returncode) == (0, 0), passed.stderr
    assert "scale.no_sqrt" in failed.stdout
    assert "> 10  scores = query @ key" in failed.stdout
    assert graded_as_a_person_does(adapted, "--kata", "sdpa", "--strict").returncode == 0


STEPS = """
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        return torch.softmax(scores / self.key(x).shape[-1] ** 0.5, dim=1) @ self.value(x)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([CausalAttention(d_in, d_out) for _ in range(num_heads)])

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)
"""
ALL_HEADS = """

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.query, self.key, self.value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (f(x).view(b, n, self.num_heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        context = torch.softmax(q @ k.transpose(2, 3) / self.head_dim**0.5, dim=-1) @ v
        return self.out_proj(context.transpose(1, 2).reshape(b, n, -1))
"""
AROUND = """

class HeadsWithFFN(nn.Module):
    def __init__(self, vocab_size, width):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.attention_heads = MultiHeadAttentionWrapper(width, width // 4, 4)
        self.net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, vocab_size))

    def forward(self, idx):
        return self.net(self.attention_heads(self.tokens(idx)))
"""


WARM_UP = """
class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        return torch.softmax(self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5, dim=-1) @ self.value(x)
"""
HELPER = """
def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1) @ v


class MultiHeadedAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h, self.linears = heads, nn.ModuleList([nn.Linear(width, width) for _ in range(4)])
        self.pos = nn.Embedding(512, width)

    def forward(self, query, key, value):
        q, k, v = (f(x).view(x.shape[0], self.h, x.shape[1], -1) for f, x in zip(self.linears, (query, key, value)))
        return self.linears[-1](attention(q, k, v).transpose(1, 2).reshape(query.shape))
"""


def test_an_attention_of_another_kind_and_one_with_positions_are_meant_before_a_single_head_and_a_helper():
    windowed = WARM_UP + ALL_HEADS.replace("MultiHead", "WindowedMultiHead")
    found, placed = (structure.attention_like(syntax.of_source((HEAD + one).encode())) for one in (windowed, HELPER))

    assert found[0].name == "WindowedMultiHeadAttention"
    assert placed[0].name == "MultiHeadedAttention"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (STEPS, "MultiHeadAttentionWrapper"),
        (STEPS + ALL_HEADS, "MultiHeadAttention"),
        (STEPS + AROUND, "MultiHeadAttentionWrapper"),
    ],
    ids=["a_list_of_heads", "beside_all_heads_in_one", "in_a_model"],
)
def test_a_list_of_heads_is_meant_unless_all_heads_are_in_one_class(source, name):
    found = [one.name for one in structure.attention_like(syntax.of_source((HEAD + source).encode()))]

    assert found[0] == name
    assert found.index("MultiHeadAttentionWrapper") < found.index("CausalAttention")
