"""What the constructor of public code wants, and which of its definitions is meant: each case was once read wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata.readings import building, inference

WITH_CACHE = """
class Attend(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.mode = args.mode
        assert self.mode in ["generate", "train"]
        self.h, self.g, self.d = args.n_heads, args.n_kv_heads, args.dim // args.n_heads
        self.wq, self.wo = nn.Linear(args.dim, args.dim, bias=False), nn.Linear(args.dim, args.dim, bias=False)
        self.wk, self.wv = (nn.Linear(args.dim, self.g * self.d, bias=False) for _ in range(2))
        self.cache_k = torch.zeros(args.batch_size, args.max_seq_len, self.g, self.d)
        self.cache_v = torch.zeros(args.batch_size, args.max_seq_len, self.g, self.d)

    def forward(self, x, start_pos: int):
        B, T, E = x.shape
        q, k, v = (one(x).view(B, T, -1, self.d) for one in (self.wq, self.wk, self.wv))
        self.cache_k[:B, start_pos:start_pos + T] = k
        self.cache_v[:B, start_pos:start_pos + T] = v
        k, v = self.cache_k[:B, : start_pos + T], self.cache_v[:B, : start_pos + T]
        k, v = (one.repeat_interleave(self.h // self.g, dim=2).transpose(1, 2) for one in (k, v))
        weights = torch.softmax(q.transpose(1, 2) @ k.transpose(-2, -1) / self.d**0.5, dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
EVEN_ANGLES = """
def precompute_rope(head_dim, length):
    assert head_dim % 2 == 0, "the size of a head must be even"
    angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim))
    return torch.cat((angles, angles), dim=1).cos(), torch.cat((angles, angles), dim=1).sin()


def compute_rope(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos[: x.shape[-2]] + torch.cat((-second, first), dim=-1) * sin[: x.shape[-2]]


class Attend(nn.Module):
    def __init__(self, width, n_heads, context_length):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))
        cos, sin = precompute_rope(head_dim=self.d, length=context_length)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (one(x).view(B, T, self.h, self.d).transpose(1, 2) for one in (self.w_q, self.w_k, self.w_v))
        q, k = compute_rope(q, self.cos, self.sin), compute_rope(k, self.cos, self.sin)
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d**0.5, dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
TEMPERATURE = """
class DotProduct(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) / self.temperature, dim=-1) @ v


class Times(DotProduct):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) * self.temperature, dim=-1) @ v


class Attend(nn.Module):
    def __init__(self, n_head, width, temp):
        super().__init__()
        self.h, self.attend = n_head, Times(temp)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, q, k, v):
        q, k, v = self.w_q(q), self.w_k(k), self.w_v(v)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        return self.w_o(self.attend(q, k, v).transpose(1, 2).flatten(2))
"""
KEYS_BEFORE = """
class Score(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.w_a = nn.Linear(config.hidden, config.alignment_hidden, bias=False)
        self.u_a = nn.Linear(2 * config.hidden, config.alignment_hidden, bias=False)
        self.v_a = nn.Parameter(torch.zeros(config.alignment_hidden))
        self.projected = None

    def cache(self, annotations):
        self.projected = self.u_a(annotations)

    def score(self, state):
        return torch.tanh(self.w_a(state)[:, None] + self.projected) @ self.v_a


class Attend(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.alignment = Score(config)
        self.annotations = None

    def cache(self, annotations):
        self.annotations = annotations
        self.alignment.cache(annotations)

    def forward(self, prev_state, src_mask=None):
        # src_mask: True marks the tokens that may be attended to
        scores = self.alignment.score(prev_state)
        if src_mask is not None:
            scores = scores.masked_fill(~src_mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.einsum("bt,btd->bd", weights, self.annotations), weights
"""
SINGLE = """
class SingleHeadAttend(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.head_dim = embed_dim
        self.qkv, self.out_proj = nn.Linear(embed_dim, 3 * embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out_proj(torch.softmax(q @ k.transpose(1, 2) / self.head_dim**0.5, dim=-1) @ v)
"""
RIGHT = {
    "a_batch_size_and_a_word_of_its_config": ("gqa", WITH_CACHE, "softmax(", "sigmoid("),
    "a_table_for_heads_of_an_even_size": ("mha", EVEN_ANGLES, " / self.d**0.5", ""),
    "a_scale_that_its_builder_sets": ("qkv_attention", TEMPERATURE, "temperature, dim=-1", "temperature, dim=-2"),
    "keys_that_come_before_the_query": ("additive_attention", KEYS_BEFORE, "torch.tanh(", "("),
    "one_head_by_its_name": ("mha", SINGLE, " / self.head_dim**0.5", ""),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_constructor_wants_is_found(name, shared_engine):
    slug, text, old, new = RIGHT[name]
    assert old in text
    wrong = text.replace(old, new).replace("sigmoid(", "torch.sigmoid(").replace("torch.torch", "torch")
    wrong = wrong.replace("sigmoid(q.transpose(1, 2) @ k.transpose(-2, -1) / self.d**0.5, dim=-1)", "sigmoid(q.mT)")
    reports = [
        shared_engine.grade(slug, (HEAD + each).encode(), attempt="mine.py", reads=True) for each in (text, wrong)
    ]

    assert reports[0].outcome == "passed", [one.message for one in reports[0].findings if one.outcome == "failed"]
    assert reports[1].outcome != "passed"


@pytest.mark.parametrize(
    ("names", "several"),
    [
        ("class AttentionHead", False),
        ("class SingleHeadAttention: self.head_dim = width", False),
        ("one_head_out", False),
        ("class MultiHeadAttention", True),
        ("self.n_head = 8", True),
        ("num_heads", True),
        ("for head in self.heads", True),
    ],
)
def test_names_of_one_head_tell_of_no_others(names, several):
    assert building._tells_of_heads(names) is several


@pytest.mark.parametrize("name", ["parts", "num_heads"])
def test_how_many_heads_that_nothing_says_is_no_mistake(name, shared_engine):
    """Three heads that are written out: read as any other number, its numbers would be called wrong."""
    text = ATTEND.replace("width, n_heads", "width").replace("self.h, self.d =", f"self.{name}, self.d =")
    text = text.replace("= n_heads, width // n_heads", "= 3, width // 3").replace("self.h", f"self.{name}")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="heads.py", reads=True)

    assert report.outcome == "ungraded"
    assert "how many heads" in report.ungraded_because


BLOCK = """
class SelfAttention(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.layer_norm, self.qkv_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttend(width, num_heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.layer_norm(x))
        return x + self.mlp(self.qkv_layer_norm(x))
"""


def test_a_block_with_the_name_of_an_attention_comes_behind_the_attention():
    told = inference.kata_of((HEAD + ATTEND + BLOCK).encode())

    assert told == ("mha", "The class SelfAttend looks like mha, so it is read as mha.")


def test_an_eps_that_is_added_is_a_convention_of_the_block(shared_engine):
    norm = (
        "\nclass Norm(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
        "        self.gamma, self.beta = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))\n\n"
        "    def forward(self, x):\n        off = x - x.mean(dim=-1, keepdim=True)\n"
        "        return self.gamma * off / torch.sqrt((off * off).mean(dim=-1, keepdim=True) + 1e-6) + self.beta\n"
    )
    text = HEAD + norm + ATTEND + BLOCK.replace("nn.LayerNorm", "Norm").replace("class SelfAttention", "class Block")
    reports = [
        shared_engine.grade("transformer_block", each.encode(), attempt="block.py", reads=True)
        for each in (text, text.replace("1e-6", "1e-8"), text.replace("1e-6", "1e-2"))
    ]

    assert [report.outcome for report in reports] == ["passed", "passed", "failed"]
    assert "eps of the norms is 1e-6" in " ".join(reports[0].reading["departures"])


def test_a_part_that_needs_no_missing_import_is_graded_and_said_to_be_a_part(tmp_path):
    part = "\ndef attend(q, k, v):\n    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v\n\n"
    whole = ATTEND.replace("(weights @ v)", "not_installed.merge(attend(q, k, v))")
    model = (
        "\nclass LanguageModel(nn.Module):\n    def __init__(self, vocab_size, width, n_heads):\n"
        "        super().__init__()\n        self.embed = nn.Embedding(vocab_size, width)\n"
        "        self.attend = SelfAttend(width, n_heads)\n\n    def forward(self, x):\n"
        "        B, T = x.shape\n        return self.attend(self.embed(x))\n"
    )
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + "import not_installed\n" + part + whole + model)
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
    assert "SelfAttend needs an import that is not installed. Only its part attend is graded, as sdpa." in done.stderr
    assert "RIGHT, AS READ  sdpa" in done.stdout


NO_VALUES = ATTEND.replace("self.w_v, self.w_o = nn.Linear(width, width), nn", "self.w_o = nn").replace(
    "(self.w_q, self.w_k, self.w_v))", "(self.w_q, self.w_k))"
)


@pytest.mark.parametrize(
    ("values", "mistake"),
    [
        ("k", "project.key_for_value"),
        ("q", "project.query_for_value"),
        ("x.view(B, T, self.h, -1).transpose(1, 2)", "project.missing"),
    ],
)
def test_a_layer_that_is_missing_is_named(values, mistake, shared_engine):
    text = NO_VALUES.replace("q, k, v = (", "q, k = (").replace(
        "        scores =", f"        v = {values}\n        scores ="
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert mistake in [one.id for found in report.diagnosis for one in found.mistakes]


def test_a_layer_that_is_missing_is_no_verdict_where_nothing_explains_the_rest(shared_engine):
    text = NO_VALUES.replace("q, k, v = (", "q, k = (").replace(
        "        scores =", "        v = torch.sin(k + q)\n        scores ="
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "there is none for v" in report.ungraded_because


def test_a_mask_that_is_kept_with_a_wrong_size_of_it_is_named(shared_engine):
    text = ATTEND.replace("self.h, self.d =", "self.mask = None\n        self.h, self.d =").replace(", mask=None", "")
    kept = (
        "if self.mask is None or self.mask.size(1) != T:\n"
        "            self.mask = causal_mask(T).unsqueeze(0).unsqueeze(0).to(x.device)\n"
        "        scores = scores.masked_fill(self.mask == 0, float('-inf'))"
    )
    text = text.replace('if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))', kept)
    maker = "\ndef causal_mask(T):\n    return torch.ones(T, T).tril()\n"
    reports = [
        shared_engine.grade("mha", (HEAD + maker + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace("size(1)", "size(-1)"))
    ]

    assert kept in text
    assert [one.id for found in reports[0].diagnosis for one in found.mistakes] == ["mask.kept"]
    assert reports[1].outcome == "passed"
