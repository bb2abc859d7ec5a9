"""Right code that is another convention, or leaves something off: it passes, and the mistakes beside it are still named."""

from __future__ import annotations

import pytest
from tests.readings.pairs import right_and_wrong, told
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.readings import fitting, inference

# Attention over the places of an image (Zhang et al., 2019): narrow queries and keys, no scale, and a gate that begins at 0.
OVER_PLACES = """
class PlaceAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.query_conv = nn.Conv2d(channels, channels // 8, kernel_size=1)
        self.key_conv = nn.Conv2d(channels, channels // 8, kernel_size=1)
        self.value_conv = nn.Conv2d(channels, channels, kernel_size=1)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        B, C, height, width = x.shape
        q, k, v = (conv(x).flatten(2) for conv in (self.query_conv, self.key_conv, self.value_conv))
        weights = F.softmax(q.transpose(1, 2) @ k, dim=-1)
        out = (v @ weights.transpose(1, 2)).view(B, C, height, width)
        return self.gamma * out + x
"""
EVERY_HTH_COLUMN = """
class Matcher(nn.Module):
    def __init__(self, num_heads, d_model):
        super().__init__()
        self.dim, self.num_heads = d_model // num_heads, num_heads
        self.q, self.k, self.v, self.merge = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        B = query.shape[0]
        q, k, v = (
            layer(x).view(B, -1, self.dim, self.num_heads)
            for layer, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        weights = torch.softmax(torch.einsum("bndh,bmdh->bhnm", q, k) / self.dim**0.5, dim=-1)
        return self.merge(torch.einsum("bhnm,bmdh->bndh", weights, v).reshape(B, -1, self.dim * self.num_heads))
"""
BIAS_OF_DISTANCES = """
class Distances(nn.Module):
    def __init__(self, n_head, buckets=32):
        super().__init__()
        self.buckets = buckets
        self.relative_attention_bias = nn.Embedding(buckets, n_head)

    def forward(self, T):
        places = torch.arange(T)
        apart = (places[:, None] - places[None, :]).clamp(0, self.buckets - 1)
        return self.relative_attention_bias(apart).permute(2, 0, 1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.rel_pos_bias = Distances(n_head)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + self.rel_pos_bias(T)
        scores = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))
"""
# The keys are projected before, and everything has the default None.
PROJECTED_BEFORE = """
class LuongScore(nn.Module):
    def __init__(self, hidden_size, key_size):
        super().__init__()
        self.key_layer = nn.Linear(key_size, hidden_size, bias=False)
        self.proj_keys = None

    def forward(self, query=None, mask=None, values=None):
        assert query.shape[0] == values.shape[0] == mask.shape[0]
        scores = query @ self.proj_keys.transpose(1, 2)
        scores = torch.where(mask, scores, scores.new_full([1], float("-inf")))
        alphas = scores.softmax(dim=-1)
        return alphas @ values, alphas

    def compute_proj_keys(self, keys):
        self.proj_keys = self.key_layer(keys)
"""
# A layer of the query, with a bias that the kata does not have.
LAYER_OF_THE_QUERY = """
class Attention(nn.Module):
    def __init__(self, encoder_size, decoder_size):
        super().__init__()
        self.linear = nn.Linear(decoder_size, encoder_size)

    def forward(self, decoder_outputs, encoder_outputs):
        scores = torch.bmm(self.linear(decoder_outputs), encoder_outputs.transpose(1, 2))
        return torch.bmm(scores.softmax(dim=-1), encoder_outputs)
"""
HEADS_IN_THE_BATCH = """
class DotProducts(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, num_heads):
        # queries, keys, values: (batch_size * num_heads, length, size)
        _, length, size = queries.shape
        weights = self.dropout(F.softmax(torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(size), dim=-1))
        self.seen = weights.reshape(-1, num_heads, length, length).mean(dim=0)
        return torch.bmm(weights, values)
"""
PROJECTED_BY_MATRICES = """
class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.qkv_proj = nn.Parameter(torch.randn(3 * embed_dim, embed_dim))
        self.qkv_bias = nn.Parameter(torch.randn(3 * embed_dim))
        self.out_proj = nn.Parameter(torch.randn(embed_dim, embed_dim))
        self.out_bias = nn.Parameter(torch.randn(embed_dim))

    def forward(self, x):
        B, T, E = x.shape
        parts = F.linear(x, self.qkv_proj, self.qkv_bias).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.h, -1).transpose(1, 2) for part in parts)
        out = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1) @ v
        return F.linear(out.transpose(1, 2).reshape(B, T, E), self.out_proj) + self.out_bias
"""
# The places of an image, the channels last.
GRID = """
class Windowless(nn.Module):
    def __init__(self, dim, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        B, H, W, _ = x.shape
        qkv = self.qkv(x).reshape(B, H * W, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.reshape(3, B * self.num_heads, H * W, -1).unbind(0)
        weights = (q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
        out = (weights @ v).view(B, self.num_heads, H, W, -1).permute(0, 2, 3, 1, 4).reshape(B, H, W, -1)
        return self.proj(out)
"""
# The tokens of each step of a video attend to one another.
EACH_STEP = """
class SpaceOnly(nn.Module):
    def __init__(self, dim, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        B, T, N, C = x.shape
        qkv = self.qkv(x).reshape(B, T, N, 3, self.num_heads, C // self.num_heads).permute(3, 0, 1, 4, 2, 5)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = (q @ k.transpose(-2, -1) * (C // self.num_heads) ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(2, 3).reshape(B, T, N, C))
"""
# A mask (B, T) or (B, T, 1), and a layer that joins the weights of the heads for who looks at them.
ALSO_A_COLUMN = ATTEND.replace(
    "        if mask is not None:\n",
    "        if mask is not None:\n"
    "            if len(mask.shape) == 3:\n"
    "                mask = mask.squeeze(-1)\n"
    "            mask = mask.unsqueeze(1).repeat(1, self.h * T, 1).reshape(B, self.h, T, T)\n",
)
JOINED_WEIGHTS = ATTEND.replace("nn.Module):", "nn.Module):  # the output and the weights").replace(
    "        return out", "        return out, self.join_linear(weights.permute(0, 2, 3, 1))"
)
JOINED_WEIGHTS = JOINED_WEIGHTS.replace(
    "super().__init__()", "super().__init__()\n        self.join_linear = nn.Linear(n_heads, 1)"
)
# A norm of x and one of the context are no two norms of a block.
TWO_NORMS = """
class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads=8):
        super().__init__()
        self.n_heads, self.scale = n_heads, torch.sqrt(torch.tensor(d_model // n_heads, dtype=torch.float32))
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.q_linear, self.k_linear = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_linear, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x1, x2):
        x1, x2 = self.norm1(x1), self.norm2(x2)
        q = self.q_linear(x1).unflatten(-1, (self.n_heads, -1))
        k, v = (layer(x2).unflatten(-1, (self.n_heads, -1)) for layer in (self.k_linear, self.v_linear))
        weights = (torch.einsum("bihd,bjhd->bhij", q, k) / self.scale).softmax(dim=-1)
        return self.out(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2))
"""
# The latents make the queries; keys and values are of x and of the latents.
LATENTS = """
class PerceiverAttention(nn.Module):
    def __init__(self, *, dim, dim_head=64, heads=8):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.norm_media, self.norm_latents = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, heads * dim_head * 2, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x, latents):
        x, latents = self.norm_media(x), self.norm_latents(latents)
        q = self.to_q(latents)
        k, v = self.to_kv(torch.cat((x, latents), dim=-2)).chunk(2, dim=-1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (q, k, v))
        weights = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))
"""
# A vector for each distance, by which queries find a bias (Huang et al., 2018).
VECTORS_OF_DISTANCES = """
class RelativeAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_len=1024):
        super().__init__()
        self.max_len, self.num_heads = max_len, num_heads
        self.key, self.value, self.query = (nn.Linear(d_model, d_model) for _ in range(3))
        self.Er = nn.Parameter(torch.randn(max_len, d_model // num_heads))
        self.register_buffer("mask", torch.tril(torch.ones(max_len, max_len))[None, None])

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (w(x).reshape(B, T, self.num_heads, -1).transpose(1, 2) for w in (self.query, self.key, self.value))
        moved = F.pad(q @ self.Er[self.max_len - T :].transpose(0, 1), (1, 0))
        moved = moved.reshape(B, self.num_heads, T + 1, T)[:, :, 1:]
        scores = (q @ k.transpose(-2, -1) + moved) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        return (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, -1)
"""
# torch's attention is the default, and there is code of its own.
READY_MADE_BY_DEFAULT = """
class SelfAttention(nn.Module):
    def __init__(self, n_emb, n_heads, tgt_size, use_pytorch_mha=True):
        super().__init__()
        self.use_pytorch_mha, self.n_heads = use_pytorch_mha, n_heads
        if use_pytorch_mha:
            self.mha = nn.MultiheadAttention(n_emb, n_heads, batch_first=True)
            self.register_buffer("hidden", ~torch.tril(torch.ones(tgt_size, tgt_size, dtype=torch.bool)))
        else:
            self.Wqkv, self.proj = nn.Linear(n_emb, 3 * n_emb), nn.Linear(n_emb, n_emb)
            self.register_buffer("tril", torch.tril(torch.ones(tgt_size, tgt_size)))

    def forward(self, x):
        B, T, C = x.shape
        if self.use_pytorch_mha:
            return self.mha(x, x, x, attn_mask=self.hidden[:T, :T])[0]
        q, k, v = (one.view(B, T, self.n_heads, -1).transpose(1, 2) for one in self.Wqkv(x).chunk(3, dim=-1))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return self.proj((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, C))
"""
# Lazy layers, as in newer editions of a textbook.
LAZY_SCORE = """
class AdditiveAttention(nn.Module):
    def __init__(self, num_hiddens, dropout):
        super().__init__()
        self.W_k = nn.LazyLinear(num_hiddens, bias=False)
        self.W_q = nn.LazyLinear(num_hiddens, bias=False)
        self.w_v = nn.LazyLinear(1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values):
        queries, keys = self.W_q(queries), self.W_k(keys)
        scores = self.w_v(torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)
        return torch.bmm(self.dropout(F.softmax(scores, dim=-1)), values)
"""
# The heads' scores and weights are mixed (Shazeer et al., 2020).
TALKING_HEADS = """
class TalkingHeads(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q, self.to_kv = nn.Linear(dim, heads * dim_head), nn.Linear(dim, heads * dim_head * 2)
        self.mix_before = nn.Parameter(torch.randn(heads, heads))
        self.mix_after = nn.Conv2d(heads, heads, 1)
        self.to_out = nn.Linear(heads * dim_head, dim)

    def forward(self, x):
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (q, k, v))
        scores = torch.einsum("bhij,hg->bgij", q @ k.transpose(-2, -1) * self.scale, self.mix_before)
        weights = self.mix_after(scores.softmax(dim=-1))
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))
"""
PAIRS = {
    "talking_heads": ("mha", TALKING_HEADS, " * self.scale", ""),
    "latents": ("mha", LATENTS, " * self.scale", ""),
    "vectors_of_distances": ("mha", VECTORS_OF_DISTANCES, "math.sqrt(q.size(-1))", "q.size(-1)"),
    "ready_made_by_default": ("mha", READY_MADE_BY_DEFAULT, "math.sqrt(q.size(-1))", "math.sqrt(C)"),
    "lazy_layers": (
        "additive_attention",
        LAZY_SCORE,
        "torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))",
        "queries.unsqueeze(2) + keys.unsqueeze(1)",
    ),
    "a_grid": ("mha", GRID, " * q.shape[-1] ** -0.5", ""),
    "each_step": ("mha", EACH_STEP, "(C // self.num_heads) ** -0.5", "C ** -0.5"),
    "also_a_column": ("mha", ALSO_A_COLUMN, " / math.sqrt(self.d)", ""),
    "joined_weights": ("mha", JOINED_WEIGHTS, "F.softmax(scores, dim=-1)", "F.softmax(scores, dim=-2)"),
    "two_norms": ("cross_attention", TWO_NORMS, " / self.scale", ""),
    "an_image_with_a_gate": ("self_attention", OVER_PLACES, "@ k, dim=-1)", "@ k, dim=-2)"),
    "every_hth_column": ("qkv_attention", EVERY_HTH_COLUMN, " / self.dim**0.5", ""),
    "a_bias_of_distances": ("mha", BIAS_OF_DISTANCES, "math.sqrt(q.size(-1))", "math.sqrt(C)"),
    "a_mask_that_must_be_given": (
        "multiplicative_attention",
        PROJECTED_BEFORE,
        "softmax(dim=-1)",
        "softmax(dim=0)",
    ),
    "a_layer_of_the_query": ("multiplicative_attention", LAYER_OF_THE_QUERY, "scores.softmax(dim=-1)", "scores"),
    "heads_in_the_batch": ("sdpa", HEADS_IN_THE_BATCH, "math.sqrt(size)", "size"),
    "matrices_with_biases": ("mha", PROJECTED_BY_MATRICES, "math.sqrt(q.size(-1))", "math.sqrt(E)"),
}
NAMED = {
    "talking_heads": {"scale.missing"},
    "latents": {"scale.missing"},
    "vectors_of_distances": {"scale.no_sqrt"},
    "ready_made_by_default": {"scale.embed_dim"},
    "lazy_layers": {"additive.no_tanh"},
    "a_grid": {"scale.missing"},
    "each_step": {"scale.embed_dim"},
    "also_a_column": {"scale.missing"},
    "joined_weights": {"softmax.query_axis"},
    "two_norms": {"scale.missing"},
    "an_image_with_a_gate": {"softmax.query_axis"},
    "every_hth_column": {"scale.missing"},
    "a_bias_of_distances": {"scale.embed_dim"},
    "a_mask_that_must_be_given": {"softmax.head_axis"},
    "a_layer_of_the_query": {"softmax.missing"},
    "heads_in_the_batch": {"scale.no_sqrt"},
    "matrices_with_biases": {"scale.embed_dim"},
}
SAID = {
    "talking_heads": "mix_before, mix_after set to change nothing",
    "latents": "no tokens in x, to which it attends too",
    "vectors_of_distances": "its bias for each distance of two tokens is 0",
    "lazy_layers": "its lazy layers get their widths when they are made",
    "a_grid": "an image, (B, height, width, E)",
    "each_step": "several sequences for each sample, (B, P, T, E)",
    "also_a_column": "a mask (B, T)",
    "an_image_with_a_gate": "x and values 8 times as wide as queries and keys",
    "every_hth_column": "head h takes every H-th column, from h on, and gives it back",
    "a_bias_of_distances": "its bias for each distance of two tokens is 0",
}


def graded(engine, text, kata="mha"):
    return engine.grade(kata, (HEAD + text).encode(), attempt="mine.py", reads=True)


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_right_and_a_mistake_beside_it_is_named(name, shared_engine):
    slug, text, old, new = PAIRS[name]

    right, wrong = right_and_wrong(shared_engine, slug, text, old, new)

    assert told(wrong) == NAMED[name]
    assert SAID.get(name, "names") in right.reading["departures"]


def test_an_attention_with_a_norm_of_x_and_one_of_the_context_is_no_block():
    assert inference.kata_of((HEAD + TWO_NORMS).encode(), "CrossAttention")[0] == "cross_attention"


def test_a_flag_with_the_name_of_a_group_makes_no_groups():
    text = ATTEND.replace("width, n_heads):", "width, n_heads, one_kv_head=False):")

    assert inference.kata_of((HEAD + text).encode())[0] == "mha"


@pytest.mark.parametrize("flag", ["use_alibi", "use_talking_heads"])
def test_what_a_flag_turns_on_beside_the_contract_is_turned_off(flag, shared_engine):
    text = ATTEND.replace("width, n_heads):", f"width, n_heads, {flag}=True):").replace(
        "        self.h, self.d =",
        f"        self.more = nn.Conv2d(n_heads, n_heads, 1) if {flag} else nn.Identity()\n        self.h, self.d =",
    )
    text = text.replace("F.softmax(scores, dim=-1)", "F.softmax(self.more(scores), dim=-1)")
    report = graded(shared_engine, text)

    assert report.outcome == "passed", report.ungraded_because
    assert f"{flag} = False" in next(line["value"] for line in report.reading["lines"] if line["what"] == "built with")
    again = shared_engine.grade(
        "mha", (HEAD + text).encode(), attempt="mine.py", reads=True, flags=tuple(report.reading["flags"])
    )
    assert again.reading["flags"] == report.reading["flags"]


def test_the_layers_of_code_that_gets_its_width_from_a_name_of_a_length_are_read(shared_engine):
    text = """
embedding_len = 32


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(embedding_len, embedding_len) for _ in range(3))

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        return torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1)), dim=2), v)
"""
    _, wrong = right_and_wrong(shared_engine, "self_attention", text, " / math.sqrt(q.size(-1))", "")

    assert told(wrong) == {"scale.missing"}


def test_one_sequence_at_a_time_may_give_its_weights_too(shared_engine):
    text = """
class Attend(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        q, k, v = (
            w(one).view(-1, self.h, self.d).transpose(0, 1)
            for w, one in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        out = self.w_o((weights @ v).transpose(0, 1).reshape(-1, self.h * self.d))
        return out, weights
"""
    source = (HEAD + text).encode()
    single = shared_engine.grade("qkv_attention", source, attempt="mine.py", reads=True, flags=("dims=2",))
    wrong = source.replace(b"return out, weights", b"return out, weights * 2")
    other = shared_engine.grade("qkv_attention", wrong, attempt="mine.py", reads=True, flags=("dims=2",))

    assert single.outcome == "passed", single.ungraded_because
    assert "weights" in {one.property for one in single.findings if one.outcome == "passed"}
    assert other.outcome != "passed"


def test_heads_that_take_every_hth_column_are_no_convention_for_who_follows_the_contract(shared_engine):
    text = (HEAD + EVERY_HTH_COLUMN).encode()
    right = shared_engine.grade("qkv_attention", text, attempt="mine.py", reads=True)
    by_contract = shared_engine.grade("qkv_attention", text, attempt="mine.py", reads=True, flags=("conventions=",))

    assert any("this is split.interleaved" in note for note in right.reading["notes"])
    assert told(by_contract) == {"split.interleaved"}


def test_a_gate_that_is_no_0_is_a_number_of_the_codes_own(shared_engine):
    text = OVER_PLACES.replace("torch.zeros(1)", "torch.full((1,), 0.5)")

    assert graded(shared_engine, text, "self_attention").outcome != "passed"


# As the documentation of torch describes its own attention.
LIKE_TORCHS_OWN = """
def dot_products(query, key, value, mask=None, dropout_p=0.0, is_causal=False):
    L, S = query.size(-2), key.size(-2)
    bias = torch.zeros(L, S, dtype=query.dtype)
    if is_causal:
        bias.masked_fill_(torch.ones(L, S, dtype=torch.bool).tril().logical_not(), float("-inf"))
    weights = torch.softmax(query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)) + bias, dim=-1)
    return torch.dropout(weights, dropout_p, train=True) @ value


class Attend(nn.Module):
    def __init__(self, width, n_heads, dropout=0.0):
        super().__init__()
        self.h, self.p = n_heads, dropout
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, q, k, v):
        q, k, v = self.q_proj(q), self.k_proj(k), self.v_proj(v)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        out = dot_products(q, k, v, dropout_p=self.p if self.training else 0.0)
        return self.out_proj(out.transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(("given", "causal"), [("", False), (", is_causal=False", False), (", is_causal=True", True)])
def test_a_flag_of_a_function_inside_that_nobody_sets_makes_no_triangle(given, causal, shared_engine):
    text = LIKE_TORCHS_OWN.replace("self.training else 0.0)", f"self.training else 0.0{given})")
    report = graded(shared_engine, text, "qkv_attention")

    assert report.outcome == "passed", report.ungraded_because
    assert ("always causal" in report.reading["departures"]) == causal
    assert not any("dropout" in note for note in report.notes)  # its caller minds the mode


def test_a_dropout_that_is_told_to_train_is_named_where_its_caller_does_not_mind_the_mode(shared_engine):
    report = graded(
        shared_engine, LIKE_TORCHS_OWN.replace("self.p if self.training else 0.0", "self.p"), "qkv_attention"
    )

    assert told(report) == {"dropout.always"}


def test_a_dropout_below_the_mode_is_none_in_a_kata_without(shared_engine):
    text = """
class Grouped(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads, dropout=0.0):
        super().__init__()
        self.h, self.g, self.dropout = n_heads, n_kv_heads, dropout
        size = dim // n_heads
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wk, self.wv = (nn.Linear(dim, n_kv_heads * size, bias=False) for _ in range(2))

    def forward(self, x):
        q = self.wq(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        k, v = (w(x).unflatten(-1, (self.g, -1)).transpose(1, 2) for w in (self.wk, self.wv))
        k, v = (one.repeat_interleave(self.h // self.g, dim=1) for one in (k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
        if self.training:
            weights = F.dropout(weights, p=self.dropout)
        return self.wo((weights @ v).transpose(1, 2).flatten(2))
"""
    right = graded(shared_engine, text, "gqa")
    always = graded(shared_engine, text.replace("        if self.training:\n    ", ""), "gqa")

    assert right.outcome == "passed", right.ungraded_because
    assert told(always) == {"dropout.always"}


def test_the_lines_of_another_class_do_not_blame_the_one_that_is_asked_for(shared_engine):
    other = ATTEND.replace("SelfAttend", "Other").replace(" / math.sqrt(self.d)", "")
    other = other.replace("F.softmax(scores, dim=-1)", "F.softmax(scores, dim=-1) / math.sqrt(self.d)")
    asked = """
class Layer(nn.Module):
    def __init__(self, attention, d_model, n_heads):
        super().__init__()
        self.inner = attention(0.1)
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.h = n_heads

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (self.h, -1)) for layer in (self.q, self.k, self.v))
        return self.o(self.inner(q, k, v).flatten(2))
"""
    text = (HEAD + other + asked).encode()
    report = shared_engine.grade("mha", text, attempt="mine.py", reads=True, flags=("entry=Layer",))
    beside = shared_engine.grade("mha", text, attempt="mine.py", reads=True, flags=("entry=Other",))

    assert report.outcome == "ungraded"
    assert told(beside) == {"scale.after_softmax"}


def test_layers_for_queries_keys_and_values_that_nothing_uses_are_named(shared_engine):
    text = """
class Masked(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads, self.head_dim = heads, embed_size // heads
        self.values = nn.Linear(self.head_dim, embed_size, bias=False)
        self.keys = nn.Linear(self.head_dim, embed_size, bias=False)
        self.queries = nn.Linear(self.head_dim, embed_size, bias=False)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, values, keys, query):
        v, k, q = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (values, keys, query))
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.head_dim**0.5, dim=-1)
        return self.fc_out((weights @ v).transpose(1, 2).flatten(2))
"""
    report = graded(shared_engine, text, "qkv_attention")

    assert told(report) == {"project.missing"}
    assert report.diagnosis[0].mistakes[0].source_line.startswith("self.values")


def test_an_argument_of_several_numbers_keeps_its_default(shared_engine):
    text = ATTEND.replace("width, n_heads):", "width, n_heads, feat_sizes=(32, 32)):").replace(
        "super().__init__()", "super().__init__()\n        self.area = feat_sizes[0] * feat_sizes[1]"
    )

    assert graded(shared_engine, text).outcome == "passed"


BY_A_WORD = LIKE_TORCHS_OWN.replace("is_causal=False", "kind='encoder'").replace(
    "if is_causal:", "if kind == 'decoder':"
)


@pytest.mark.parametrize(("given", "causal"), [("", False), (", kind='encoder'", False), (", kind='decoder'", True)])
def test_a_word_of_a_function_inside_that_nobody_sets_makes_no_triangle(given, causal, shared_engine):
    text = BY_A_WORD.replace("self.training else 0.0)", f"self.training else 0.0{given})")
    report = graded(shared_engine, text, "qkv_attention")

    assert report.outcome == "passed", report.ungraded_because
    assert ("always causal" in report.reading["departures"]) == causal


def test_a_narrow_width_may_have_a_name_and_its_layers_a_norm_of_their_weights(shared_engine):
    text = OVER_PLACES.replace("super().__init__()", "super().__init__()\n        inner = channels // 4").replace(
        "channels // 8, kernel_size=1)", "inner, kernel_size=1)"
    )
    plain = "nn.Conv2d(channels, inner, kernel_size=1)"
    text = text.replace(f"self.key_conv = {plain}", f"self.key_conv = nn.utils.spectral_norm({plain})")
    report = graded(shared_engine, text, "self_attention")

    assert "spectral_norm(" in text
    assert report.outcome == "passed", report.ungraded_because
    assert "x and values 4 times as wide as queries and keys" in report.reading["departures"]


# The last rows of a mask for as many queries as keys: (length, length), 1 = hidden.
LAST_ROWS = """
def attend(q, k, v, mask=None):
    scores = q @ k.permute(0, 1, 3, 2) / math.sqrt(k.shape[-1])
    if mask is not None:
        queries, keys = scores.shape[-2:]
        scores = scores + mask[keys - queries : keys, :keys] * -10000.0
    return torch.softmax(scores, dim=-1) @ v
"""


def test_a_mask_that_only_square_scores_take_is_found(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "sdpa", LAST_ROWS, " / math.sqrt(k.shape[-1])", "")

    assert {"True hides", "only as many queries as keys"} <= set(right.reading["departures"])
    assert told(wrong) == {"scale.missing"}


# Two widths, of which one is that of a head; and a mask that the code cannot do without.
TWO_WIDTHS = """
class Tracing(nn.Module):
    def __init__(self, d_model, d_feature, n_heads, kq_same):
        super().__init__()
        self.d_k, self.h, self.kq_same = d_feature, n_heads, kq_same
        self.v_linear, self.k_linear = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        if kq_same is False:
            self.q_linear = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, q, k, v, mask):
        q = self.q_linear(q) if self.kq_same is False else self.k_linear(q)
        k, v = self.k_linear(k), self.v_linear(v)
        q, k, v = (one.view(one.size(0), -1, self.h, self.d_k).transpose(1, 2) for one in (q, k, v))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(self.d_k)).masked_fill(mask == 0, -1e32)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_one_of_two_widths_may_be_that_of_a_head(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "qkv_attention", TWO_WIDTHS, " / math.sqrt(self.d_k)", "")

    built = next(line["value"] for line in right.reading["lines"] if line["what"] == "built with")
    assert "d_feature = D" in built
    assert "kq_same = False" in built
    assert told(wrong) == {"scale.missing"}


def test_what_a_constructor_keeps_and_nothing_uses_is_no_size(shared_engine):
    kept = OVER_PLACES.replace("self, channels):", "self, channels, activation):").replace(
        "super().__init__()", "super().__init__()\n        self.activation = activation"
    )
    report = graded(shared_engine, kept, "self_attention")
    built = next(line["value"] for line in report.reading["lines"] if line["what"] == "built with")

    assert report.outcome == "passed", report.ungraded_because
    assert built == "channels = I, activation = None"


# Keys of a coarser image, as in a pyramid of vision transformers (Wang et al., 2021).
COARSER = """
class Coarser(nn.Module):
    def __init__(self, dim, heads, sr_ratio):
        super().__init__()
        self.h, self.sr_ratio = heads, sr_ratio
        self.q, self.kv, self.proj = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        if sr_ratio > 1:
            self.sr = nn.Conv2d(dim, dim, kernel_size=sr_ratio, stride=sr_ratio)

    def forward(self, x, H, W):
        B, N, C = x.shape
        q = self.q(x).reshape(B, N, self.h, C // self.h).transpose(1, 2)
        if self.sr_ratio > 1:
            x = self.sr(x.transpose(1, 2).reshape(B, C, H, W)).flatten(2).transpose(1, 2)
        k, v = self.kv(x).reshape(B, -1, 2, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * (C // self.h) ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, N, C))
"""


def test_keys_of_a_coarser_image_are_asked_with_all_its_places(shared_engine):
    right, wrong = right_and_wrong(shared_engine, "mha", COARSER, " * (C // self.h) ** -0.5", "")
    built = next(line["value"] for line in right.reading["lines"] if line["what"] == "built with")

    assert built == "dim = E, heads = H, sr_ratio = 1"
    assert told(wrong) == {"scale.missing"}


def test_a_gate_that_the_code_does_not_have_and_flags_that_do_not_fit_the_kata_are_refused(shared_engine):
    text = (HEAD + OVER_PLACES).encode()
    report = shared_engine.grade("self_attention", text, attempt="mine.py", reads=True, flags=("gates=nothing",))

    assert report.outcome == "ungraded"
    assert "it has no parameter 'nothing'; it has gamma" in report.ungraded_because
    for slug, flag in (("mha", "narrow=8"), ("sdpa", "gates=gamma")):
        with pytest.raises(UsageError):
            fitting.check(slug, catalog.find(slug).folder, (flag,), reads=True)


def test_code_that_takes_no_number_of_groups_is_told_of_the_kata_without(shared_engine):
    report = graded(shared_engine, ATTEND, "gqa")

    assert report.outcome == "ungraded"
    assert "no argument of it is a number of key-value heads (width, n_heads)" in report.ungraded_because
    assert "--kata mha" in report.ungraded_because
