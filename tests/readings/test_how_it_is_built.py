"""What the constructor of public code wants, and which of its definitions is meant: each case was once read wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata.readings import inference
from attn_kata.readings.candidates import head_counts

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
    assert head_counts.tells_of_heads(names) is several


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

    assert [report.outcome for report in reports] == ["passed", "passed", "ungraded"]
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


def without_values(values):
    text = NO_VALUES.replace("q, k, v = (", "q, k = (")
    return (HEAD + text.replace("        scores =", f"        v = {values}\n        scores =", 1)).encode()


@pytest.mark.parametrize(("values", "mistake"), [("k", "project.key_for_value"), ("q", "project.query_for_value")])
def test_a_layer_in_the_place_of_a_missing_one_is_named(values, mistake, shared_engine):
    report = shared_engine.grade("mha", without_values(values), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert mistake in [one.id for found in report.diagnosis for one in found.mistakes]


def test_values_without_a_layer_are_taken_as_they_are_and_said(shared_engine):
    as_they_are = without_values("x.view(B, T, self.h, -1).transpose(1, 2)")
    wrong = as_they_are.replace(b" / math.sqrt(self.d)", b"")
    report, unscaled = (
        shared_engine.grade("mha", source, attempt="mine.py", reads=True) for source in (as_they_are, wrong)
    )

    assert report.outcome == "passed"
    assert "no layer of the values" in report.reading["departures"]
    assert "this is project.missing" in " ".join(report.reading["notes"])
    assert [one.id for found in unscaled.diagnosis for one in found.mistakes] == ["scale.missing"]


def test_a_layer_that_is_missing_is_no_verdict_where_nothing_explains_the_rest(shared_engine):
    text = NO_VALUES.replace("q, k, v = (", "q, k = (").replace(
        "        scores =", "        v = torch.sin(k + q)\n        scores =", 1
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


CROSS_FROM_KEYS = """
class Attend(nn.Module):
    def __init__(self, query_dim, kv_dim=None, heads=1):
        super().__init__()
        kv_dim = kv_dim if kv_dim is not None else query_dim
        self.heads, self.d = heads, kv_dim // heads
        self.q, self.k, self.v = nn.Linear(query_dim, kv_dim), nn.Linear(kv_dim, kv_dim), nn.Linear(kv_dim, kv_dim)
        self.back = nn.Linear(kv_dim, query_dim)

    def forward(self, q, kv):
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (self.q(q), self.k(kv), self.v(kv)))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.back((weights @ v).transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    def __init__(self, latent_dim, input_dim):
        super().__init__()
        self.q_norm, self.kv_norm = nn.LayerNorm(latent_dim), nn.LayerNorm(input_dim)
        self.attend = Attend(latent_dim, input_dim)
        self.dense = nn.Sequential(nn.Linear(latent_dim, latent_dim), nn.GELU(), nn.Linear(latent_dim, latent_dim))

    def forward(self, x, z):
        x = x + self.attend(self.q_norm(x), self.kv_norm(z))
        return x + self.dense(x)
"""
SQUARE_HEAD = """
class Head(nn.Module):
    def __init__(self, head_size, d_model, applyMasking=False):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(head_size, head_size, bias=False) for _ in range(3))
        self.applyMasking = applyMasking
        self.register_buffer("later", torch.triu(torch.ones(256, 256), diagonal=1))

    def forward(self, x):
        T, C = x.shape[-2:]
        scores = self.query(x) @ self.key(x).transpose(-2, -1) * C**-0.5
        if(self.applyMasking):
            scores = scores.masked_fill(self.later[:T, :T] == 1, float("-inf"))
        return torch.softmax(scores, dim=-1) @ self.value(x)
"""
PARTS_OF_A_CONFIG = """
class Head(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.params = params
        self.query, self.key, self.value = (nn.Linear(params.model_dim, params.key_dim) for _ in range(3))

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.mT / math.sqrt(self.params.key_dim), dim=-1) @ v


class Heads(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.params = params
        self.heads = nn.ModuleList(Head(self.params.head_params) for _ in range(self.params.num_heads))
        self.proj = nn.Linear(self.params.model_dim, self.params.model_dim)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))
"""
ALIGNED = """
class Align(nn.Module):
    def __init__(self, enc_dim, dec_dim):
        super().__init__()
        self.W_a, self.U_a = nn.Linear(enc_dim, dec_dim, bias=False), nn.Linear(dec_dim, dec_dim, bias=False)
        self.v = nn.Linear(dec_dim, 1, bias=False)

    def forward(self, decoder_hidden, encoder_outputs):
        energy = self.v(torch.tanh(self.W_a(encoder_outputs) + self.U_a(decoder_hidden)[:, None])).squeeze(-1)
        weights = torch.softmax(energy, dim=1)
        return (weights[..., None] * encoder_outputs).sum(1), weights
"""
TWO_D = """
class OneHead(nn.Module):
    def __init__(self, d_model, row_dim=0, col_dim=1):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.row_dim, self.col_dim = row_dim, col_dim

    def forward(self, encodings_q, encodings_k, encodings_v):
        q, k, v = self.W_q(encodings_q), self.W_k(encodings_k), self.W_v(encodings_v)
        scores = torch.matmul(q, k.transpose(self.row_dim, self.col_dim)) / k.size(self.col_dim) ** 0.5
        return torch.softmax(scores, dim=self.col_dim) @ v


class SeveralHeads(nn.Module):
    def __init__(self, d_model, row_dim=0, col_dim=1, num_heads=1):
        super().__init__()
        self.heads = nn.ModuleList([OneHead(d_model, row_dim, col_dim) for _ in range(num_heads)])

    def forward(self, encodings_q, encodings_k, encodings_v):
        return torch.cat([head(encodings_q, encodings_k, encodings_v) for head in self.heads], dim=1)
"""
FOUND = {
    "a_width_of_the_keys_for_all": ("cross_attention", CROSS_FROM_KEYS, " / math.sqrt(self.d)", ""),
    "a_head_no_wider_than_x": ("self_attention", SQUARE_HEAD, "* C**-0.5", ""),
    "a_part_of_a_config_by_its_name": ("mha", PARTS_OF_A_CONFIG, "dim=-1) @ v", "dim=-2) @ v"),
    "layers_by_what_they_are_applied_to": ("additive_attention", ALIGNED, "torch.tanh(", "("),
    "heads_of_one_sequence_without_an_output": ("qkv_attention", TWO_D, "dim=self.col_dim) @", "dim=self.row_dim) @"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_names_leave_open_is_found_and_hides_no_mistake(name, shared_engine):
    slug, text, old, new = FOUND[name]
    assert text.count(old) == 1
    told = inference.kata_of((HEAD + text).encode())
    right, wrong = (
        shared_engine.grade(slug, (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(old, new))
    )

    assert told is not None
    assert told[0] == slug
    assert right.outcome == "passed", right.ungraded_because
    assert wrong.outcome == "failed"
    assert wrong.diagnosis


def test_a_mask_under_a_switch_is_said_not_to_be_tried(shared_engine):
    fixed = SQUARE_HEAD.replace("self.later[:T, :T]", "self.later")
    report = shared_engine.grade("self_attention", (HEAD + fixed).encode(), attempt="mine.py", reads=True)

    assert "its own mask is not tried (applyMasking)" in report.reading["departures"]


def test_a_scale_by_the_number_of_keys_is_named_where_there_are_as_many_queries(shared_engine):
    text = ATTEND.replace("def forward(self, x, mask=None):", "def forward(self, query, key, value):").replace(
        "B, T, E = x.shape", "B, T, E = query.shape"
    )
    text = text.replace("(w(x).view(", "(w(y).view(").replace(
        "for w in (self.w_q, self.w_k, self.w_v))",
        "for w, y in zip((self.w_q, self.w_k, self.w_v), (query, key, value)))",
    )
    text = text.replace(
        'if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))',
        'if self.hides:\n            scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))',
    ).replace("self.h, self.d =", "self.hides = False\n        self.h, self.d =")
    text = text.replace("math.sqrt(self.d)", "math.sqrt(scores_of.shape[-1])").replace(
        "scores = q @ k.transpose(-2, -1) /", "scores_of = q @ k.transpose(-2, -1)\n        scores = scores_of /"
    )
    report = shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert "scale.key_length" in [one.id for found in report.diagnosis for one in found.mistakes]


@pytest.mark.parametrize(
    "of_output", ["out @ self.Wo", "torch.einsum('ij,...j->...i', self.Wo, out)", "F.linear(out, self.Wo)"]
)
def test_matrices_may_be_stored_either_way_and_two_mistakes_are_named(of_output, shared_engine):
    text = ATTEND.replace("self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)", "").replace(
        "self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)",
        "self.Wq, self.Wk, self.Wv, self.Wo = (nn.Parameter(torch.randn(width, width)) for _ in range(4))",
    )
    text = text.replace("w(x).view(B, T, self.h, -1).transpose(1, 2)", "SPLIT").replace(
        "(self.w_q, self.w_k, self.w_v)", "(self.Wq, self.Wk, self.Wv)"
    )
    text = text.replace("self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))", "MERGED\n        out = OUTPUT")
    right = text.replace("SPLIT", "(x @ w).view(B, T, self.h, -1).transpose(1, 2)").replace(
        "MERGED", "(weights @ v).transpose(1, 2).reshape(B, T, E)"
    )
    wrong = text.replace("SPLIT", "(x @ w).reshape(B, self.h, T, -1)").replace(
        "MERGED", "(weights @ v).reshape(B, T, E)"
    )
    reports = [
        shared_engine.grade("mha", (HEAD + each.replace("OUTPUT", of_output)).encode(), attempt="mine.py", reads=True)
        for each in (right, wrong)
    ]

    assert reports[0].outcome == "passed"
    assert {one.id for found in reports[1].diagnosis for one in found.mistakes} == {
        "split.no_transpose",
        "merge.no_transpose",
    }


def test_a_dropout_that_spoils_the_backward_pass_is_no_convention(shared_engine):
    text = ATTEND.replace("width, n_heads", "width, n_heads, dropout=0.1").replace(
        "self.h, self.d =", "self.drop = nn.Dropout(dropout, inplace=True)\n        self.h, self.d ="
    )
    text = text.replace("F.softmax(scores, dim=-1)", "self.drop(F.softmax(scores, dim=-1))")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["gradient.in_place"]


def test_classes_with_names_of_several_contracts_and_other_arguments_are_read(tmp_path):
    """Each has the layers of the contracts with its name, and none of them takes what these ask for."""
    text = CROSS_FROM_KEYS.replace("class Attend", "class MultiHeadAttention").replace(
        "= Attend(", "= MultiHeadAttention("
    )
    text = text.replace("query_dim, kv_dim=None, heads=1", "heads, query_dim, kv_dim").replace(
        "MultiHeadAttention(latent_dim", "MultiHeadAttention(1, latent_dim"
    )
    for old, new in (("self.q,", "self.q_proj,"), ("self.k,", "self.k_proj,"), ("self.v =", "self.v_proj =")):
        text = text.replace(old, new)
    for old, new in (
        ("self.q(", "self.q_proj("),
        ("self.k(", "self.k_proj("),
        ("self.v(", "self.v_proj("),
        ("self.back", "self.o_proj"),
    ):
        text = text.replace(old, new)
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + text)
    done = subprocess.run(
        [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
    )

    assert (done.returncode, "RIGHT, AS READ  cross_attention" in done.stdout) == (0, True), done.stderr


def test_marks_for_a_profiler_of_a_gpu_are_left_out(shared_engine):
    text = (
        "\n\n@torch.cuda.nvtx.range('attend')\ndef attend(q, k, v):\n    with torch.cuda.nvtx.range('scores'):\n"
        "        scores = q @ k.mT / q.shape[-1] ** 0.5\n    return scores.softmax(-1) @ v\n"
    )
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"


def test_a_window_that_is_wider_than_every_input_is_said(shared_engine):
    text = ATTEND.replace("width, n_heads", "width, n_heads, window_size=256").replace(
        "self.h, self.d = n_heads, width, n_heads", "self.h, self.d = n_heads, width"
    )
    text = text.replace("self.h, self.d =", "self.window_size = window_size\n        self.h, self.d =").replace(
        "width, n_heads, window_size=256 // n_heads", "width // n_heads"
    )
    text = text.replace(
        "        if mask is not None",
        "        far = (torch.arange(T)[:, None] - torch.arange(T)).abs() > self.window_size\n"
        "        scores = scores.masked_fill(far, -torch.inf)\n        if mask is not None",
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert "Inputs longer than its window are not tried" in " ".join(report.reading["notes"])


def test_what_sets_first_weights_and_einsum_with_words_need_no_import(shared_engine):
    text = ATTEND.replace(
        "q @ k.transpose(-2, -1)", "einsum('batch head query d, batch head key d -> batch head query key', q, k)"
    ).replace("        self.w_v,", "        trunc_normal_(self.w_q.weight, std=0.02)\n        self.w_v,", 1)
    imports = "from fancy_einsum import einsum\nfrom timm.models.layers import trunc_normal_\n"
    right, wrong = (
        shared_engine.grade("mha", (imports + HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(" / math.sqrt(self.d)", ""))
    )

    assert right.outcome == "passed", right.ungraded_because
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["scale.missing"]


@pytest.mark.parametrize(("sign", "ids"), [("/", []), ("*", ["scale.inverted"])])
def test_a_temperature_that_is_multiplied_with_is_inverted(sign, ids, shared_engine):
    """Beside a base that divides by it, as above, it is what the builder sets: there either may be meant."""
    alone = TEMPERATURE[: TEMPERATURE.index("class Times")].replace("/ self.temperature", f"{sign} self.temperature")
    report = shared_engine.grade("sdpa", (HEAD + alone).encode(), attempt="mine.py", reads=True)

    assert [one.id for found in report.diagnosis for one in found.mistakes] == ids
    assert report.passed is not bool(ids)


def test_decorators_of_a_missing_import_give_back_what_they_decorate(shared_engine):
    imports = "from not_installed import kernel, of_function, plain\n"
    text = ATTEND.replace("class SelfAttend", "@of_function(scaled)\nclass SelfAttend").replace(
        "/ math.sqrt(self.d)", "/ scaled(self.d)"
    )
    helper = "\n@plain\n@kernel('root')\ndef scaled(d):\n    return d**0.5\n\n"
    right, wrong = (
        shared_engine.grade("mha", (imports + HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (helper + text, helper.replace("d**0.5", "d") + text)
    )

    assert right.outcome == "passed", right.ungraded_because
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["scale.no_sqrt"]


KEY_VALUE_HEADS = """
class GroupedQueryAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.d = config.n_head, config.n_embd // config.n_head
        self.kv_heads = config.n_kv_head if hasattr(config, "n_kv_head") else config.n_head
        self.base = config.rope_base if hasattr(config, "rope_base") else None
        self.q_proj = nn.Linear(config.n_embd, config.n_embd)
        self.k_proj = nn.Linear(config.n_embd, self.kv_heads * self.d)
        self.v_proj = nn.Linear(config.n_embd, self.kv_heads * self.d)
        self.o_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x):
        b, n, e = x.shape
        q = self.q_proj(x).view(b, n, self.heads, self.d).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.kv_heads, self.d).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.kv_heads, self.d).transpose(1, 2)
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        y = scores.softmax(dim=-1) @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, n, e))
"""


def test_a_number_of_key_value_heads_that_a_config_may_lack_is_given(shared_engine):
    """And a flag that it may lack is not: the code does without."""
    tiled = KEY_VALUE_HEADS.replace(
        "repeat_interleave(self.heads // self.kv_heads, dim=1)", "repeat(1, self.heads // self.kv_heads, 1, 1)"
    )
    right, wrong = (
        shared_engine.grade("gqa", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (KEY_VALUE_HEADS, tiled)
    )

    assert right.outcome == "passed", right.ungraded_because
    assert "config.n_kv_head=G" in str(right.reading)
    assert "rope_base" not in str(right.reading)
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["group.repeated"]


def test_a_config_whose_items_are_all_kept_is_asked_for_what_the_constructor_reads(shared_engine):
    kept = ATTEND.replace("def __init__(self, width, n_heads):", "def __init__(self, config):")
    assert kept != ATTEND
    own = "        super().__init__()\n"
    kept = kept.replace(
        own,
        own
        + "        for name, value in config.items():\n            setattr(self, name, value)\n"
        + "        width, n_heads = self.n_embd, self.n_head\n",
        1,
    )
    right, wrong = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (kept, kept.replace("scores, dim=-1", "scores, dim=-2"))
    )

    assert right.outcome == "passed", right.ungraded_because
    assert "config.n_head=H" in str(right.reading)
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["softmax.query_axis"]


def test_a_logger_is_given_that_says_nothing(shared_engine):
    for build, logger in (("self, args, width, n_heads", "args.logger"), ("self, width, n_heads, logger", "logger")):
        text = ATTEND.replace("self, width, n_heads", build).replace(
            "        super().__init__()\n", f"        super().__init__()\n        self.logger = {logger}\n", 1
        )
        text = text.replace(
            "        B, T, E = x.shape\n", "        self.logger.warning('%s', x.shape)\n        B, T, E = x.shape\n"
        )
        assert text.count("logger") > 1

        report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

        assert report.outcome == "passed", report.ungraded_because
        assert f"{logger}=logger" in str(report.reading)
        assert not report.attempt_output


ROTARY_TABLES = """
class RotaryTables(nn.Module):
    def __init__(self, dim, longest=64):
        super().__init__()
        angles = torch.outer(torch.arange(longest).float(), 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim))
        angles = torch.cat([angles, angles], dim=-1)
        self.register_buffer("cos_cached", angles.cos())
        self.register_buffer("sin_cached", angles.sin())

    def forward(self, x, seq_len=None):
        return (
            self.cos_cached[:seq_len].to(dtype=x.dtype),
            self.sin_cached[:seq_len].to(dtype=x.dtype),
        )


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

"""


def test_tables_that_a_layer_cuts_for_each_call_are_left_out(shared_engine):
    text = ATTEND.replace("        self.w_q,", "        self.rotary_emb = RotaryTables(self.d)\n        self.w_q,", 1)
    text = ROTARY_TABLES + text.replace(
        "        scores = q @",
        "        cos, sin = self.rotary_emb(v, seq_len=T)\n"
        "        q, k = apply_rotary_pos_emb(q, k, cos, sin)\n        scores = q @",
    )
    right, wrong = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(" / math.sqrt(self.d)", ""))
    )

    assert right.outcome == "passed", right.ungraded_because
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["scale.missing"]


LAZY = ATTEND.replace("nn.Linear(width, width)", "nn.LazyLinear(width)")
BIASES_APART = """
class Attention(nn.Module):
    def __init__(self, dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.v_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        bias = None
        if self.q_bias is not None:
            bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        qkv = F.linear(x, self.qkv.weight, bias).reshape(B, N, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, N, C))
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "mistake"),
    [
        (LAZY, " / math.sqrt(self.d)", "", "scale.missing"),
        (BIASES_APART, "dim=-1", "dim=-2", "softmax.query_axis"),
        (
            BIASES_APART,
            "[self.q_bias, torch.zeros_like(self.v_bias)",
            "[torch.zeros_like(self.q_bias), self.q_bias",
            None,
        ),
    ],
    ids=["lazy_layers", "biases_apart", "a_bias_in_the_place_of_another"],
)
def test_layers_that_get_their_width_or_bias_elsewhere_are_read(text, old, new, mistake, shared_engine):
    assert text.count(old) == 1
    right, wrong = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(old, new))
    )
    flags = tuple(right.reading["flags"])
    typed_back = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=flags)

    assert right.outcome == "passed", right.ungraded_because
    assert (typed_back.outcome, typed_back.reading["flags"]) == ("passed", list(flags))
    assert wrong.outcome == "failed"
    assert mistake is None or [one.id for found in wrong.diagnosis for one in found.mistakes] == [mistake]


OF_HEADS = """
n_embed: int = 384
dropout: float = 0.2


class AttHead(nn.Module):
    def __init__(self, head_size: int):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(n_embed, head_size, bias=False) for _ in range(3))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / math.sqrt(self.key.out_features)
        return scores.softmax(dim=-1) @ self.value(x)


class Heads(nn.Module):
    def __init__(self, N: int, head_size: int):
        super().__init__()
        self.heads = nn.ModuleList([AttHead(head_size) for _ in range(N)])
        self.proj = nn.Linear(n_embed, n_embed)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))
"""


def test_sizes_with_annotations_at_module_level_and_a_number_of_heads_by_what_is_made_of_it(shared_engine):
    right, wrong = (
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (OF_HEADS, OF_HEADS.replace("self.key.out_features", "n_embed"))
    )

    assert right.passed, right.ungraded_because
    assert right.reading is not None
    assert {"build=N=H,head_size=D", "globals=n_embed=E"} <= set(right.reading["flags"])
    assert [mistake.id for one in wrong.diagnosis for mistake in one.mistakes] == ["scale.embed_dim"]


def test_a_rate_is_known_by_the_dropout_that_is_made_with_it(shared_engine):
    text = ATTEND.replace("n_heads):", "n_heads, droupout=0.1):").replace(
        "        super().__init__()\n", "        super().__init__()\n        self.drop = nn.Dropout(p=droupout)\n"
    )
    dropped = text.replace("(weights @ v)", "(self.drop(weights) @ v)")
    assert "nn.Dropout(p=droupout)" in text
    assert dropped != text
    report = shared_engine.grade("mha", (HEAD + dropped).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading is not None
    assert "droupout=p" in str(report.reading["flags"])


def test_a_size_that_only_switches_something_on_keeps_its_default(shared_engine):
    text = ATTEND.replace("n_heads):", "n_heads, attention_size=None):").replace(
        "        super().__init__()\n", "        super().__init__()\n        self._attention_size = attention_size\n"
    )
    windowed = text.replace(
        "        weights =",
        "        if self._attention_size is not None:\n            raise ValueError(x)\n        weights =",
    )
    assert windowed != text
    report = shared_engine.grade("mha", (HEAD + windowed).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading is not None
    assert "attention_size" not in str(report.reading["flags"])


def test_a_word_that_the_code_cannot_do_without_is_given_and_others_are_left_out(shared_engine):
    text = ATTEND.replace("width, n_heads):", "config):").replace(
        "        super().__init__()\n",
        "        super().__init__()\n        width, n_heads = config.n_embd, config.n_head\n"
        "        self.kind, self.position = config.kind, config.position\n",
    )
    text = text.replace(
        "        weights =",
        '        if self.position == "rope":\n            q, k = None, None\n'
        '        if self.kind == "plain":\n            q = q * 1\n'
        '        elif self.kind == "fast":\n            raise ImportError\n'
        '        else:\n            raise ValueError(f"unknown kind: {self.kind}")\n        weights =',
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading is not None
    assert "config.kind='plain'" in str(report.reading["flags"]).replace('"', "'")


def test_of_words_the_one_for_what_is_plain_is_given(shared_engine):
    text = ATTEND.replace("width, n_heads):", "width, n_heads, kernel):").replace(
        "        super().__init__()\n", "        super().__init__()\n        self.kernel = kernel\n"
    )
    text = text.replace(
        "        weights = torch.softmax(",
        '        if self.kernel == "relu":\n            act = lambda s, dim: torch.relu(s)\n'
        '        elif self.kernel == "softmax":\n            act = torch.softmax\n'
        "        else:\n            raise ValueError(kernel)\n        weights = act(",
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", (report.ungraded_because, report.diagnosis)
