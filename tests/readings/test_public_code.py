"""What public code, graded as it was found, was once read wrong in: each in our own words."""

from __future__ import annotations

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.cli.reading_options import ReadingOptions
from attn_kata.readings.choice import Chosen

BLOCK = """
class Mixer(nn.Module):
    def __init__(self, width, frames, heads):
        super().__init__()
        self.h = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.register_buffer("later", torch.triu(torch.full((frames, frames), -10000.0), diagonal=1))

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = self.qkv(self.norm(x)).view(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(E // self.h) + self.later[:T, :T], dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(B, T, E))
        return x + self.ff(self.norm2(x))
"""
PLACED = """
class Cross(nn.Module):
    def __init__(self, dim, context_dim, num_heads):
        super().__init__()
        self.h, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.to_q, self.to_k = nn.Linear(dim, dim), nn.Linear(context_dim, dim)
        self.to_v, self.to_out = nn.Linear(context_dim, dim), nn.Linear(dim, dim)

    def forward(self, q, context, query_pos_emb=None, key_pos_emb=None):
        q = q if query_pos_emb is None else q + query_pos_emb
        context = context if key_pos_emb is None else context + key_pos_emb
        q, k, v = self.to_q(q), self.to_k(context), self.to_v(context)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.scale, dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))
"""
AT_LEAST_A_BATCH = """
def attend(queries, keys, values, allowed):
    scores = torch.einsum("b...qd,b...kd->b...qk", queries, keys) / queries.shape[-1] ** 0.5
    if allowed is not None:
        scores = scores.masked_fill(~allowed, float("-inf"))
    return torch.einsum("b...qk,b...kd->b...qd", scores.softmax(-1), values)
"""
FEATURES_FIRST = """
class Heads(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.root = heads, (dim // heads) ** 0.5
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.to_qkv(x), "b t (d k h) -> k b h t d", k=3, h=self.heads)
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.root, dim=-1)
        return self.to_out(rearrange(weights @ v, "b h t d -> b t (h d)"))
"""
IN_VIEWS = FEATURES_FIRST.replace(
    'rearrange(self.to_qkv(x), "b t (d k h) -> k b h t d", k=3, h=self.heads)',
    "self.to_qkv(x).view(*x.shape[:2], -1, 3, self.heads).permute(3, 0, 4, 1, 2)",
).replace('rearrange(weights @ v, "b h t d -> b t (h d)")', "(weights @ v).transpose(1, 2).flatten(2)")
EINOPS = "from einops import rearrange\n"

MASK_ON_A_DEVICE = """
def create_causal_mask(seq_len, device, dtype):
    mask = torch.full((seq_len, seq_len), float("-inf"), device=device, dtype=dtype)
    return torch.triu(mask, diagonal=1)[None, None]
"""
ANOTHER_BASE = """
def apply_rope(x, head_dim, base_freq=1000000.0):
    B, T, H, D = x.shape
    freqs = 1.0 / base_freq ** (torch.arange(0, head_dim, 2) / head_dim)
    angles = torch.outer(torch.arange(T), freqs).to(x)
    cos, sin = (torch.cat((one, one), -1)[:, None] for one in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
"""
ONE_KEY_HEAD = """
class SharedKeys(nn.Module):
    def __init__(self, dim, num_q_heads):
        super().__init__()
        self.num_q_heads, self.head_dim = num_q_heads, dim // num_q_heads
        self.q_proj = nn.Linear(dim, num_q_heads * self.head_dim)
        self.k_proj = nn.Linear(dim, self.head_dim)
        self.v_proj = nn.Linear(dim, self.head_dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.q_proj(x).view(B, T, self.num_q_heads, self.head_dim).transpose(1, 2)
        k, v = self.k_proj(x)[:, None], self.v_proj(x)[:, None]
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.head_dim), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, -1))
"""
OF_CONFIG = 'config["model"]["images"]["width"], config["model"]["images"]["num_heads"]'
NESTED_CONFIG = FEATURES_FIRST.replace("self, dim, heads", "self, config").replace(
    "        self.heads, self.root", f"        dim, heads = {OF_CONFIG}\n        self.heads, self.root"
)
KEYS_FIRST_WEIGHTS = """
class Align(nn.Module):
    def __init__(self, query_size, key_size, hidden_size):
        super().__init__()
        self.of_query = nn.Linear(query_size, hidden_size, bias=False)
        self.of_key = nn.Linear(key_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query, keys, mask=None):
        # query (batch, query_size), keys (seq_len, batch, key_size), mask (seq_len, batch): 0 or -inf
        scores = self.score(torch.tanh(self.of_query(query) + self.of_key(keys))).squeeze(2)
        if mask is not None:
            scores = scores + mask
        return scores.softmax(0)
"""

RIGHT = {
    "a_mask_on_a_device": ("causal_mask", MASK_ON_A_DEVICE),
    "another_base": ("rope", ANOTHER_BASE),
    "one_key_head_beside_a_product": ("gqa", ONE_KEY_HEAD),
    "a_config_in_a_config": ("mha", EINOPS + NESTED_CONFIG),
    "weights_with_keys_first": ("additive_attention", KEYS_FIRST_WEIGHTS),
    "a_triangles_side_by_any_name": ("transformer_block", BLOCK),
    "what_is_added_for_positions": ("cross_attention", PLACED),
    "at_least_a_batch": ("sdpa", AT_LEAST_A_BATCH),
    "heads_innermost": ("mha", EINOPS + FEATURES_FIRST),
    "heads_innermost_in_views": ("mha", IN_VIEWS),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_code_passes(name, shared_engine):
    slug, text = RIGHT[name]
    report = shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed", [one.message for one in report.findings if one.outcome == "failed"]


@pytest.mark.parametrize(
    ("name", "edit", "mistake"),
    [
        ("a_triangles_side_by_any_name", ("diagonal=1", "diagonal=0"), "mask.shifted"),
        ("what_is_added_for_positions", ("(dim // num_heads) ** -0.5", "dim**-0.5"), "scale.embed_dim"),
        ("a_mask_on_a_device", ("diagonal=1", "diagonal=0"), "mask.shifted"),
        ("another_base", ("-second, first", "second, first"), "rope.sign_lost"),
        ("one_key_head_beside_a_product", ("math.sqrt(self.head_dim)", "self.head_dim"), "scale.no_sqrt"),
        ("a_config_in_a_config", ("/ self.root", ""), "scale.missing"),
        ("weights_with_keys_first", ("softmax(0)", "softmax(1)"), "softmax.head_axis"),
        ("at_least_a_batch", (" / queries.shape[-1] ** 0.5", ""), "scale.missing"),
        ("heads_innermost", ("/ self.root", "* self.root"), "scale.inverted"),
        (
            "heads_innermost_in_views",
            ("(weights @ v).transpose(1, 2).flatten(2)", "(weights @ v).reshape(x.shape)"),
            "merge.no_transpose",
        ),
    ],
)
def test_its_mistakes_are_named(name, edit, mistake, shared_engine):
    slug, text = RIGHT[name]
    report = shared_engine.grade(slug, (HEAD + text.replace(*edit)).encode(), attempt="mine.py", reads=True)

    assert edit[0] in text
    assert report.outcome == "failed"
    assert mistake in [one.id for found in report.diagnosis for one in found.mistakes]


@pytest.mark.parametrize("merge", ["(weights @ v).transpose(1, 2).reshape(B, T, E)", "(weights @ v).reshape(B, T, E)"])
def test_heads_that_stay_behind_the_tokens_are_named(merge, shared_engine):
    text = ATTEND.replace(".view(B, T, self.h, -1).transpose(1, 2)", ".view(B, T, self.h, -1)")
    text = text.replace("(weights @ v).transpose(1, 2).reshape(B, T, E)", merge)
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert "split.order" in [one.id for found in report.diagnosis for one in found.mistakes]


def test_a_product_of_batches_that_is_given_heads_is_a_verdict(shared_engine):
    text = ATTEND.replace(".view(B, T, self.h, -1).transpose(1, 2)", ".view(B, T, self.h, -1)")
    text = text.replace("q @ k.transpose(-2, -1)", "torch.bmm(q, k.transpose(1, 2))").replace(
        "weights @ v", "torch.bmm(weights, v)"
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    assert "batch1 must be a 3D tensor" in next(one.message for one in report.findings if one.outcome == "failed")


def test_a_right_part_of_what_cannot_be_read_is_not_graded_in_its_place():
    part = "def attend(q, k, v):\n    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v\n"
    whole = (
        "class MultiHead(nn.Module):\n    def __init__(self, width, n_heads):\n        super().__init__()\n"
        "        self.q, self.k, self.v = nn.Linear(width, width), helper(width), helper(width)\n\n"
        "    def forward(self, x):\n        return ATTEND(self.q(x), self.k(x), self.v(x))\n"
    )
    uses, uses_not = ((HEAD + part + whole.replace("ATTEND", name)).encode() for name in ("attend", "elsewhere"))

    why = "it could not be read as mha: MultiHead raises NameError"

    assert [name for _, name, _ in ReadingOptions().others(uses, "mha", why=why)] == []
    assert [name for _, name, _ in ReadingOptions().others(uses_not, "mha", why=why)] == ["attend"]


OF_SLICES = """
class Heads(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads, self.size = n_heads, width // n_heads
        self.q, self.k, self.v = (
            nn.ModuleList([nn.Linear(self.size, self.size) for _ in range(n_heads)]) for _ in range(3)
        )
        self.out = nn.Linear(width, width)

    def forward(self, x):
        found = []
        for q, k, v, part in zip(self.q, self.k, self.v, x.chunk(self.n_heads, dim=-1)):
            weights = torch.softmax(q(part) @ k(part).transpose(-2, -1) / self.size**0.5, dim=-1)
            found.append(weights @ v(part))
        return self.out(torch.cat(found, dim=-1))
"""


def test_heads_that_project_their_own_columns_alone_are_named_and_other_mistakes_are_seen(shared_engine):
    right = (HEAD + OF_SLICES).encode()
    both = (HEAD + OF_SLICES.replace("self.size**0.5", "self.size")).encode()
    named = []
    for source in (right, both):
        report = shared_engine.grade("mha", source, attempt="mine.py", reads=True)
        assert report.outcome == "failed"
        named.append({one.id for found in report.diagnosis for one in found.mistakes})

    assert named == [{"project.slices"}, {"project.slices", "scale.no_sqrt"}]


def test_a_class_with_heads_by_the_name_of_one_without_is_told_by_its_heads():
    text = ATTEND.replace("class SelfAttend", "class SelfAttention").replace("width, n_heads", "embed_dim, num_heads")
    text = text.replace("width", "embed_dim").replace("n_heads", "num_heads").replace("numum", "num")
    for old, new in (("w_q", "q_proj"), ("w_k", "k_proj"), ("w_v", "v_proj")):
        text = text.replace(old, new)
    told = ReadingOptions().nearest((HEAD + text).encode())

    assert told is not None
    assert told[0] == "mha"


OPTIONAL_SIZES = """
class SelfAttend(nn.Module):
    def __init__(self, width, n_heads, qk_dim=None):
        super().__init__()
        qk_dim = qk_dim or width
        self.h, self.d = n_heads, qk_dim // n_heads
        self.w_qkv, self.w_o = nn.Linear(width, 3 * qk_dim), nn.Linear(qk_dim, width)

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in self.w_qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2))
"""


def test_sizes_that_are_none_by_default_and_the_width_then_are_left_out(shared_engine):
    report = shared_engine.grade("mha", (HEAD + OPTIONAL_SIZES).encode(), attempt="mine.py", reads=True)

    assert "build=width=E,n_heads=H" in report.reading["flags"]
    assert report.outcome == "passed"


def test_a_window_is_said_to_be_none_of_the_katas():
    near = "        far = (torch.arange(T)[:, None] - torch.arange(T)).abs() > self.window_size\n"
    text = ATTEND.replace(
        "        weights =", f"{near}        scores = scores.masked_fill(far, -9e9)\n        weights ="
    )
    text = text.replace("self.h, self.d =", "self.window_size = 1\n        self.h, self.d =")
    found = read(HEAD + text, "mha")

    assert isinstance(found, Chosen)
    assert "window" in found.doubt


CONTEXT_FIRST = """
class CrossAttendHead(nn.Module):
    def __init__(self, kq_dimension, v_dimension, encoder_dimension, decoder_dimension):
        super().__init__()
        self.root = math.sqrt(kq_dimension)
        self.query, self.key = nn.Linear(decoder_dimension, kq_dimension), nn.Linear(encoder_dimension, kq_dimension)
        self.value, self.back = nn.Linear(encoder_dimension, v_dimension), nn.Linear(v_dimension, decoder_dimension)

    def forward(self, encoder_embeddings, decoder_embeddings):
        q, k, v = self.query(decoder_embeddings), self.key(encoder_embeddings), self.value(encoder_embeddings)
        return self.back(torch.softmax(q @ k.transpose(-2, -1) / self.root, dim=-1) @ v)
"""
REPEATS_ITS_GROUPS = """
class Grouped(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.h, self.g, self.n_kv_groups = config.n_heads, config.n_kv_heads, config.n_kv_groups
        self.d, self.slowest = config.head_dim, 1 / config.rope_theta
        self.wq = nn.Linear(config.d_model, self.h * self.d)
        self.wk, self.wv = (nn.Linear(config.d_model, self.g * self.d) for _ in range(2))
        self.wo = nn.Linear(self.h * self.d, config.d_model)

    def forward(self, x, mask=None):
        q, k, v = (layer(x).unflatten(-1, (-1, self.d)).transpose(1, 2) for layer in (self.wq, self.wk, self.wv))
        k, v = (one.repeat_interleave(self.n_kv_groups, dim=1) for one in (k, v))
        scores = q @ k.transpose(-2, -1) / self.d**0.5
        scores = scores if mask is None else scores + mask
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
HEADS_OF_HIDDEN = """
class OneOfThem(nn.Module):
    def __init__(self, dim, n_hidden):
        super().__init__()
        self.W_K, self.W_Q, self.W_V = (nn.Linear(dim, n_hidden) for _ in range(3))
        self.n_hidden = n_hidden

    def forward(self, x, attn_mask):
        scores = self.W_Q(x) @ self.W_K(x).transpose(-2, -1) / math.sqrt(self.n_hidden)
        scores = scores if attn_mask is None else scores.masked_fill(~attn_mask, -torch.inf)
        return scores.softmax(-1) @ self.W_V(x)


class SeveralHeads(nn.Module):
    def __init__(self, dim, n_hidden, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([OneOfThem(dim, n_hidden) for _ in range(num_heads)])
        self.proj = nn.Linear(num_heads * n_hidden, dim)

    def forward(self, x, attn_mask):
        return self.proj(torch.cat([head(x, attn_mask) for head in self.heads], dim=-1))
"""


@pytest.mark.parametrize(
    ("slug", "text"), [("cross_attention", CONTEXT_FIRST), ("gqa", REPEATS_ITS_GROUPS), ("mha", HEADS_OF_HIDDEN)]
)
def test_what_stands_where_the_names_do_not_say_is_found(slug, text, shared_engine):
    """A context that comes first; how many heads share a key; the width of one head, called hidden."""
    right = shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)
    wrong = shared_engine.grade(
        slug,
        (HEAD + text.replace(".transpose(-2, -1) /", ".transpose(-2, -1) *")).encode(),
        attempt="mine.py",
        reads=True,
    )

    assert (right.outcome, wrong.outcome) == ("passed", "failed")


def test_a_class_with_the_layers_of_an_attention_is_meant_and_not_the_function_that_it_calls():
    part = "def attention(q, k, v):\n    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v\n\n\n"
    whole = ATTEND.replace("SelfAttend", "MHSA").replace("(weights @ v)", "attention(q, k, v)")
    whole = whole.replace("        weights = F.softmax(scores, dim=-1)\n", "")
    unnamed = whole.replace("MHSA", "Mixer")

    assert [ReadingOptions().nearest((HEAD + part + text).encode())[0] for text in (whole, unnamed)] == ["mha", "mha"]


SIZES_ELSEWHERE = ATTEND.replace("self, width, n_heads):", "self):").replace("= n_heads, width", "= NUM_HEADS, D_MODEL")
SIZES_ELSEWHERE = "from .constants import D_MODEL, NUM_HEADS\n" + SIZES_ELSEWHERE.replace(
    "width, width", "D_MODEL, D_MODEL"
)
OF_CONFIGS = """
class SelfAttend(nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(configs.enc_in, configs.enc_in) for _ in range(3))

    def forward(self, x):
        scores = torch.matmul(self.query(x), self.key(x).transpose(1, 2)) / (x.shape[-1] ** 0.5)
        return F.softmax(scores, dim=-1) @ self.value(x)
"""
HEADS_BY_EINOPS = """
from einops import rearrange


def several_heads(q, k, v, heads: int):
    q, k, v = (rearrange(one, "b t (h d) -> b h t d", h=heads) for one in (q, k, v))
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
    return rearrange(weights @ v, "b h t d -> b t (h d)")
"""


@pytest.mark.parametrize(
    ("slug", "text"), [("mha", SIZES_ELSEWHERE), ("self_attention", OF_CONFIGS), ("sdpa", HEADS_BY_EINOPS)]
)
def test_sizes_that_come_from_elsewhere_are_found(slug, text, shared_engine):
    """From another file that is not here; from a config by a name of its own; by einops alone."""
    right = shared_engine.grade(slug, (HEAD + text).encode(), attempt="mine.py", reads=True)
    wrong = HEAD + text.replace(") / ", ") * ").replace("(1, 2)) / (", "(1, 2)) * (")
    wrong = shared_engine.grade(slug, wrong.encode(), attempt="mine.py", reads=True)

    assert (right.outcome, wrong.outcome) == ("passed", "failed")


def test_a_part_is_graded_where_what_uses_it_is_a_whole_model():
    """A decoder with recurrent layers is no attention: what it attends with is meant."""
    part = """
class Additive(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.W, self.U, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, 1)

    def forward(self, query, keys):
        weights = self.v(torch.tanh(self.W(query) + self.U(keys))).transpose(1, 2).softmax(-1)
        return weights @ keys, weights


class AttnDecoding(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.attention, self.gru, self.out = Additive(size), nn.GRU(2 * size, size), nn.Linear(size, size)

    def forward(self, query, keys):
        found, weights = self.attention(query, keys)
        return self.out(self.gru(torch.cat([query, found], dim=-1))[0]), weights
"""
    found = read(HEAD + part, "additive_attention")

    assert isinstance(found, Chosen)
    assert found.reading.entry == "Additive"


def test_a_rotation_that_is_a_static_method_of_another_class_is_switched_off(shared_engine):
    turning = """
class RoPE:
    @staticmethod
    def apply_rotary_emb(xq, xk, angles):
        xq, xk = (torch.view_as_complex(one.float().unflatten(-1, (-1, 2))) for one in (xq, xk))
        return tuple(torch.view_as_real(one * angles).flatten(3) for one in (xq, xk))


"""
    angles = "torch.polar(torch.ones(T, 1), torch.arange(T)[:, None] / 1.0)"
    text = ATTEND.replace(
        "        scores = q", f"        q, k = RoPE.apply_rotary_emb(q, k, {angles})\n        scores = q"
    )
    report = shared_engine.grade("mha", (HEAD + turning + text).encode(), attempt="mine.py", reads=True)
    flags = tuple(report.reading["flags"])
    again = shared_engine.grade("mha", (HEAD + turning + text).encode(), attempt="mine.py", reads=True, flags=flags)

    assert "unturned=RoPE.apply_rotary_emb" in flags
    assert (report.outcome, again.outcome) == ("passed", "passed")


WRAPPER = """
class CausalHead(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("later", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2) / self.W_key.out_features**0.5
        scores = scores.masked_fill(self.later[: x.shape[1], : x.shape[1]], -torch.inf)
        return self.dropout(scores.softmax(-1)) @ self.W_value(x)


class HeadsWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalHead(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)
"""


def test_a_wrapper_around_heads_is_read_with_its_heads(shared_engine):
    """Its `d_out` is the width of one head, as in a well-known book; a mistake around the heads is seen too."""
    wrong = WRAPPER.replace("for head in self.heads], dim=-1", "for head in self.heads[:1]] * len(self.heads), dim=-1")
    assert wrong != WRAPPER
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True) for text in (WRAPPER, wrong)
    ]

    assert [one.outcome for one in reports] == ["passed", "ungraded"]
    assert "'values' does not hold" in reports[1].ungraded_because
    assert all(one.reading["entry"] == "HeadsWrapper" for one in reports)
