"""How code is built, called and answered: each way is read without a flag, and hides no mistake."""

from __future__ import annotations

import pytest
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.readings import inference
from attn_kata.readings.choice import Chosen
from attn_kata.readings.reading import parse

ATTEND = """
class SelfAttend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        out = self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
        return out
"""
NAMED_PARTS = {
    "a_dict": ("", 'return {"attn": weights, "output": out}'),
    "a_dataclass": (
        "from dataclasses import dataclass\n\n@dataclass\nclass Answer:\n    hidden: torch.Tensor\n    p: torch.Tensor\n",
        "return Answer(out, weights)",
    ),
    "a_named_tuple": (
        "from typing import NamedTuple\n\nclass Answer(NamedTuple):\n    weights: torch.Tensor\n    out: torch.Tensor\n",
        "return Answer(weights, out)",
    ),
}
SWITCHED = ATTEND.replace(
    "        scores = q @",
    "        if self.has_sdpa:\n"
    "            fast = F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else mask.bool())\n"
    "            return self.w_o(fast.transpose(1, 2).reshape(B, T, E))\n"
    "        scores = q @",
).replace("self.h, self.d =", 'self.has_sdpa = hasattr(F, "scaled_dot_product_attention")\n        self.h, self.d =')

RATE_OF_THE_CALL = ATTEND.replace("mask=None)", "mask=None, dropout=0.1)").replace(
    "F.softmax(scores, dim=-1)", "F.dropout(F.softmax(scores, dim=-1), dropout, self.training)"
)
SCALED_BY_ITS_CALLER = """
def attend(q, k, v, scale=None):
    scores = q @ k.transpose(-2, -1)
    if scale is not None:
        scores = scores * scale
    return scores.softmax(dim=-1) @ v
"""

JOINED = """
class Align(nn.Module):
    def __init__(self, enc_dim, dec_dim, hidden):
        super().__init__()
        self.energy = nn.Linear(enc_dim + dec_dim, hidden)
        self.v = nn.Linear(hidden, 1, bias=False)

    def forward(self, state, encoder_outputs):
        state = state[:, None].expand(-1, encoder_outputs.size(1), -1)
        energy = torch.tanh(self.energy(torch.cat([state, encoder_outputs], dim=-1)))
        weights = F.softmax(self.v(energy).squeeze(-1), dim=-1)
        return (weights[:, None] @ encoder_outputs)[:, 0]
"""

# A rotation that is made outside and handed to the call.
HANDED_ROTATION = ATTEND.replace("mask=None):", "rotary_emb, mask=None):").replace(
    "        scores = q", "        q, k = rotary_emb(q), rotary_emb(k)\n        scores = q"
)
HANDED_TABLES = ATTEND.replace("mask=None):", "position_embeddings, mask=None):").replace(
    "        scores = q",
    "        cos, sin = position_embeddings\n"
    "        q, k = q * cos + other(q) * sin, k * cos + other(k) * sin\n"
    "        scores = q",
)
HANDED_TABLES_AND_THEIR_TURN = (
    "def other(x):\n    first, last = x.chunk(2, dim=-1)\n    return torch.cat((-last, first), dim=-1)\n"
    + HANDED_TABLES
)

A_CONFIG_OF_THE_FILE = "class Config:\n    n_embd = 768\n    n_head = 12\n    eps = 1e-5\n\n" + ATTEND.replace(
    "(self, width, n_heads)", "(self)"
).replace("n_heads, width // n_heads", "Config.n_head, Config.n_embd // Config.n_head").replace(
    "width", "Config.n_embd"
)
PARTS_OF_A_CONFIG = (
    ATTEND.replace("(self, width, n_heads)", "(self, config)")
    .replace("n_heads, width // n_heads", "config.model.n_head, config.model.n_embd // config.model.n_head")
    .replace("width", "config.model.n_embd")
)
SIZES_OF_ONE = """
class SelfAttend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v = (nn.Parameter(torch.rand(1, n_heads, width, width // n_heads)) for _ in range(3))
        self.w_o = nn.Linear(width, width, bias=False)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (x[:, None] @ w for w in (self.w_q, self.w_k, self.w_v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
MISSING_IMPORTS = (
    "from some_toolkit.registry import register, Base\nfrom some_toolkit import *\n\n@register('attend')"
    + ATTEND.replace("SelfAttend(nn.Module)", "SelfAttend(Base)").replace("mask=None)", "mask: Base | None = None)")
)
OF_TOKENS = """
def make_src_mask(src, pad_idx=0):
    return (src != pad_idx).unsqueeze(1).unsqueeze(2)
"""
OF_LENGTHS = """
def lengths_to_padding_mask(lens, max_len):
    places = torch.arange(max_len, device=lens.device)
    return places.unsqueeze(0) >= lens.unsqueeze(1)
"""

OF_ONE_SIZE = """
class Attend(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.query, self.key = nn.Linear(hidden_dim, hidden_dim), nn.Linear(hidden_dim, hidden_dim)
        self.value = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / math.sqrt(self.hidden_dim)
        return F.softmax(scores, dim=-1) @ self.value(x)
"""
A_FLAG_OF_THE_CALL = ATTEND.replace("mask=None)", "mask=None, use_flash=True)").replace(
    "        scores = q @",
    "        if use_flash and mask is None:\n"
    "            fast = F.scaled_dot_product_attention(q, k, v)\n"
    "            return self.w_o(fast.transpose(1, 2).reshape(B, T, E))\n"
    "        scores = q @",
)

AN_IMPORTED_ROTATION = "from .rope import apply_rotary_emb\n" + ATTEND.replace(
    "mask=None):", "freqs_cos, freqs_sin):"
).replace(
    "        scores = q",
    "        q, k = apply_rotary_emb(q, freqs_cos, freqs_sin), apply_rotary_emb(k, freqs_cos, freqs_sin)\n"
    "        mask = torch.ones(T, T, device=x.device).tril()\n        scores = q",
)
AN_IMPORTED_ROTATION_OF_BOTH = "from rotations import RotaryEmbedding\n" + ATTEND.replace(
    "self.h, self.d =", "self.rotary = RotaryEmbedding(width // n_heads)\n        self.h, self.d ="
).replace("        scores = q", "        q, k = self.rotary.turn(q, k)\n        scores = q")

A_SWITCH_OF_THE_SCALE = (
    ATTEND.replace("width, n_heads)", "width, n_heads, scale=False)")
    .replace("self.h, self.d =", "self.scale = scale\n        self.h, self.d =")
    .replace(" / math.sqrt(self.d)\n", "\n        if self.scale:\n            scores = scores / self.d**0.5\n")
)
A_WORD_THAT_IT_COMPARES = ATTEND.replace("(self, width, n_heads)", "(self, config)").replace(
    "self.h, self.d = n_heads, width // n_heads",
    "if config.attn_type == 'full':\n            self.scaled = True\n        elif config.attn_type == 'linear':\n"
    "            self.scaled = False\n        else:\n            raise ValueError(config.attn_type)\n"
    "        width, n_heads = config.n_embd, config.n_head\n        self.h, self.d = n_heads, width // n_heads",
)
A_SOURCE_BESIDE_THE_QUERY = """
class KeyValueAttention(nn.Module):
    def __init__(self, q_in_dim, qk_dim, kv_in_dim, v_dim, out_dim):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(q_in_dim, qk_dim), nn.Linear(kv_in_dim, qk_dim)
        self.v_proj, self.out = nn.Linear(kv_in_dim, v_dim), nn.Linear(v_dim, out_dim)
        self.scale = qk_dim**0.5

    def forward(self, q, s, mask):
        q, k, v = self.q_proj(q), self.k_proj(s), self.v_proj(s)
        weights = F.softmax((torch.einsum("bqh,bsh->bqs", q, k) / self.scale).masked_fill(mask == 0, -1e10), dim=-1)
        return weights, self.out(torch.einsum("bqs,bsh->bqh", weights, v))
"""
A_LIST_AND_AN_OUTPUT = """
class Attend(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d = h, d_model // h
        self.linear_layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(3)])
        self.output_linear = nn.Linear(d_model, d_model)

    def forward(self, query, key, value):
        B, T, E = query.shape
        q, k, v = (
            layer(x).view(B, -1, self.h, self.d).transpose(1, 2) for layer, x in zip(self.linear_layers, (query, key, value))
        )
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.output_linear((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
ONE_OF_SOME_WORDS = """
class Attend(nn.Module):
    def __init__(self, d_token, n_heads, initialization):
        super().__init__()
        assert initialization in ["kaiming", "xavier"]
        self.h, self.d = n_heads, d_token // n_heads
        self.W_q, self.W_k = nn.Linear(d_token, d_token), nn.Linear(d_token, d_token)
        self.W_v, self.W_out = nn.Linear(d_token, d_token), nn.Linear(d_token, d_token) if n_heads > 1 else None

    def forward(self, x_q: torch.Tensor, x_kv: torch.Tensor, key_compression: nn.Linear | None):
        B, T, E = x_q.shape
        k, v = (layer(x_kv).view(B, -1, self.h, self.d).transpose(1, 2) for layer in (self.W_k, self.W_v))
        k = k if key_compression is None else key_compression(k)
        q = self.W_q(x_q).view(B, T, self.h, self.d).transpose(1, 2)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        x = (weights @ v).transpose(1, 2).reshape(B, T, E)
        return x if self.W_out is None else self.W_out(x)
"""
HEADS_THIRD = """
def attend(q, k, v, mask=None):
    scores = torch.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return torch.einsum("nhqk,nkhd->nqhd", scores.softmax(dim=-1), v)
"""
ONE_HEAD_ACROSS = """
class CrossAttend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.scale = dim**-0.5

    def forward(self, x, context):
        scores = self.query(x) @ self.key(context).transpose(-2, -1) * self.scale
        return F.softmax(scores, dim=-1) @ self.value(context)
"""
A_TRIANGLE_BEHIND_A_FLAG = (
    ATTEND.replace("width, n_heads)", "width, n_heads, causal=False)")
    .replace("self.h, self.d =", "self.causal = causal\n        self.h, self.d =")
    .replace(
        "        if mask is",
        "        if self.causal:\n"
        "            later = torch.triu(torch.ones_like(scores), diagonal=1).bool()\n"
        '            scores = scores.masked_fill(later, float("-inf"))\n'
        "        if mask is",
    )
)
A_LINEAR_OF_ITS_OWN = """
class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(outputs, inputs))

    def forward(self, x):
        return x @ self.weight.T

""" + ATTEND.replace("nn.Linear(", "Linear(")
A_ROTATION_THAT_MAY_BE_LEFT_OUT = """
class RotaryEmbedding(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.length = length

    def forward(self, x):
        return x.roll(1, -1)

""" + ATTEND.replace("width, n_heads)", "width, n_heads, max_seq_len=None, theta=None)").replace(
    "self.h, self.d =",
    "if (max_seq_len is None) != (theta is None):\n            raise ValueError('both or none')\n"
    "        self.rope = RotaryEmbedding(width // n_heads, max_seq_len) if max_seq_len is not None else None\n"
    "        self.h, self.d =",
).replace(
    "        scores = q @",
    "        if self.rope is not None:\n            q, k = self.rope(q), self.rope(k)\n        scores = q @",
)
AN_OPEN_MASK_BY_DEFAULT = (
    ATTEND.replace("mask=None)", "mask=torch.ones(0, 0, 0, dtype=torch.bool))")
    .replace(
        "        if mask is not None:\n            scores = scores.masked_fill(mask == 0",
        "        if mask.size(-1) > 0:\n            scores = scores.masked_fill(mask.unsqueeze(1) == 0",
    )
    .replace(
        "        B, T, E = x.shape",
        '        """x (#batch, time, 1): see code below for zero-shaped tensors; mask (#batch, 1, time)."""\n'
        "        B, T, E = x.shape",
    )
)
A_MASK_THAT_IT_NEEDS = (
    ATTEND.replace("mask=None", "mask")
    .replace("        if mask is not None:\n            scores", "        scores")
    .replace("masked_fill(mask == 0", "masked_fill(mask")
    .replace(
        "        scores = q", "        mask = (mask == 0).view(B, 1, T, T).expand(B, self.h, T, T)\n        scores = q"
    )
)
A_MASK_THAT_IT_CHANGES = (
    ATTEND.replace("mask=None", "mask")
    .replace("masked_fill(mask == 0", "masked_fill(mask")
    .replace("            scores =", "            mask.unsqueeze_(1).eq_(0)\n            scores =")
)
KEYS_BEFORE = """
class LuongScore(nn.Module):
    def __init__(self, hidden_size: int = 1, key_size: int = 1):
        super().__init__()
        self.key_layer = nn.Linear(key_size, hidden_size, bias=False)
        self.projected = None

    def forward(self, query, mask, values):
        \"\"\"query (batch, 1, hidden), mask (batch, 1, src): 0 in invalid positions, 1 else\"\"\"
        assert query.shape[1] == 1 == mask.shape[1]
        assert values.shape[2] == self.key_layer.in_features
        scores = query @ self.projected.transpose(1, 2)
        scores = torch.where(mask > 0, scores, scores.new_full([1], float("-inf")))
        weights = F.softmax(scores, dim=-1)
        return weights @ values, weights

    def project_keys(self, keys):
        self.projected = self.key_layer(keys)
"""
TOKENS_FIRST = """
class RelAttn(nn.Module):
    def __init__(self, n_head, d_model, d_head):
        super().__init__()
        self.n_head, self.d_head = n_head, d_head
        self.q_net = nn.Linear(d_model, n_head * d_head, bias=False)
        self.kv_net = nn.Linear(d_model, 2 * n_head * d_head, bias=False)
        self.o_net = nn.Linear(n_head * d_head, d_model, bias=False)

    def forward(self, h, attn_mask=None):
        # [qlen x klen x bsz x n_head]
        q = self.q_net(h).view(h.size(0), h.size(1), self.n_head, self.d_head)
        k, v = (one.view(h.size(0), h.size(1), self.n_head, self.d_head) for one in self.kv_net(h).chunk(2, -1))
        score = torch.einsum("ibnd,jbnd->ijbn", q, k) / self.d_head**0.5
        if attn_mask is not None:
            if attn_mask.dim() == 2:
                score = score.masked_fill(attn_mask[None, :, :, None], float("-inf"))
            elif attn_mask.dim() == 3:
                score = score.masked_fill(attn_mask[:, :, :, None], float("-inf"))
        vec = torch.einsum("ijbn,jbnd->ibnd", F.softmax(score, dim=1), v)
        return h + self.o_net(vec.reshape(h.size(0), h.size(1), -1))
"""
HEADS_BY_A_LETTER = """
class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v, h):
        super().__init__()
        self.fc_q, self.fc_k = nn.Linear(d_model, h * d_k), nn.Linear(d_model, h * d_k)
        self.fc_v, self.fc_o = nn.Linear(d_model, h * d_v), nn.Linear(h * d_v, d_model)
        self.d_k, self.d_v, self.h = d_k, d_v, h

    def forward(self, queries, keys, values, attention_mask=None, attention_weights=None):
        \"\"\"attention_mask (b, h, nq, nk): True indicates masking. attention_weights: multiplicative weights.\"\"\"
        b, nq, nk = *queries.shape[:2], keys.shape[1]
        q = self.fc_q(queries).view(b, nq, self.h, self.d_k).permute(0, 2, 1, 3)
        k = self.fc_k(keys).view(b, nk, self.h, self.d_k).permute(0, 2, 3, 1)
        v = self.fc_v(values).view(b, nk, self.h, self.d_v).permute(0, 2, 1, 3)
        att = q @ k / self.d_k**0.5
        if attention_weights is not None:
            att = att * attention_weights
        if attention_mask is not None:
            att = att.masked_fill(attention_mask, float("-inf"))
        att = torch.softmax(att, -1)
        return self.fc_o((att @ v).permute(0, 2, 1, 3).reshape(b, nq, self.h * self.d_v))
"""
TURNED_BY_MATRICES = """
def rope(pos, dim, theta):
    omega = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=pos.dtype) / dim)
    out = torch.einsum("...n,d->...nd", pos, omega)
    out = torch.stack([torch.cos(out), -torch.sin(out), torch.sin(out), torch.cos(out)], dim=-1)
    b, n, d, _ = out.shape
    return out.view(b, n, d, 2, 2).float()

def apply_rope(xq, xk, freqs_cis):
    xq_, xk_ = (x.float().reshape(*x.shape[:-1], -1, 1, 2) for x in (xq, xk))
    xq_out = freqs_cis[..., 0] * xq_[..., 0] + freqs_cis[..., 1] * xq_[..., 1]
    xk_out = freqs_cis[..., 0] * xk_[..., 0] + freqs_cis[..., 1] * xk_[..., 1]
    return xq_out.reshape(*xq.shape).type_as(xq), xk_out.reshape(*xk.shape).type_as(xk)
"""
A_TABLE_OF_A_DTYPE = """
def build_rope_cache(seq_len, n_elem, dtype, device, base=10000):
    theta = 1.0 / base ** (torch.arange(0, n_elem, 2, dtype=dtype, device=device) / n_elem)
    angles = torch.outer(torch.arange(seq_len, dtype=dtype, device=device), theta)
    both = torch.cat([angles, angles], dim=1)
    return torch.stack((both.cos()[None, None], both.sin()[None, None]), dim=0)

def apply_rope(x, rope_cache):
    cos, sin = rope_cache
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos[:, :, : x.size(2)] + turned * sin[:, :, : x.size(2)]
"""
TURNED_IN_PAIRS = """
def apply_rotary_emb_qk(xqk, freqs_cos, freqs_sin):
    even, odd = xqk[..., 0::2], xqk[..., 1::2]
    cos_part = even * freqs_cos - odd * freqs_sin
    sin_part = even * freqs_sin + odd * freqs_cos
    return torch.stack([cos_part, sin_part], dim=-1).flatten(-2)
"""

A_CONFIG_BY_ANOTHER_NAME = (
    ATTEND.replace("(self, width, n_heads)", "(self, model_cfg)")
    .replace("n_heads, width // n_heads", 'model_cfg["n_heads"], model_cfg["emb_dim"] // model_cfg["n_heads"]')
    .replace("self.w_q, self.w_k", 'width = model_cfg["emb_dim"]\n        self.w_q, self.w_k', 1)
)
SIZES_OF_A_FILE = (
    'import yaml\ncfg = yaml.safe_load(open("sizes.yaml"))\nblock_size, n_head = cfg["block_size"], cfg["n_head"]\n'
    'n_embd = cfg["n_embd"]\n'
    + ATTEND.replace("(self, width, n_heads)", "(self)").replace("n_heads", "n_head").replace("width", "n_embd")
)
A_CACHE_OF_ANOTHER_FILE = "from some_cache import Cache\n" + ATTEND.replace(
    "mask=None):", "mask=None, past: Cache | None = None):"
).replace(
    "        scores = q @",
    "        if isinstance(past, Cache):\n            k, v = past.update(k, v)\n        scores = q @",
)

A_LINEAR_THAT_KEEPS_IN_OUT = A_LINEAR_OF_ITS_OWN.replace("(outputs, inputs)", "(inputs, outputs)").replace(
    "x @ self.weight.T", "x @ self.weight"
)
A_SIZE_OF_A_BLOCK = (
    ATTEND.replace("(self, width, n_heads)", "(self, config)")
    .replace("        self.h, self.d", "        self.most = config.n_blocksize\n        self.h, self.d")
    .replace("n_heads, width // n_heads", "config.n_head, config.n_embd // config.n_head")
    .replace("width", "config.n_embd")
    .replace("        q, k, v =", "        assert T <= self.most\n        q, k, v =")
)
ASSERTS_FLOAT32 = ATTEND.replace(
    "        B, T, E =", "        assert isinstance(x, torch.FloatTensor)\n        B, T, E ="
)
T5 = ATTEND.replace("SelfAttend", "T5Attention").replace(" / math.sqrt(self.d)", "")

# A mask of tokens that hides the queries that are padding, too: with one number for both, or with 0 for their scores.
HIDDEN_QUERIES = ATTEND.replace(
    '            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
    "            both = mask[:, None, None, :].bool() & mask[:, None, :, None].bool()\n"
    "            scores = scores.masked_fill(~both, -1e9)\n",
)
QUERIES_WITHOUT_SCORES = ATTEND.replace(
    '            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
    '            scores = scores.masked_fill(~mask[:, None, None, :].bool(), float("-inf"))\n'
    "            scores = torch.where(mask[:, None, :, None].bool(), scores, torch.zeros_like(scores))\n",
)
A_ROTATION_FOR_THE_CONSTRUCTOR = (
    ATTEND.replace("width, n_heads)", "width, n_heads, rope)")
    .replace("self.h, self.d", "self.rope = rope\n        self.h, self.d")
    .replace("        scores = q @", "        q, k = self.rope(q, 0), self.rope(k, 0)\n        scores = q @")
)
OF_ONE_LENGTH = (
    ATTEND.replace("width, n_heads)", "width, n_heads, sequence_length)")
    .replace("self.h, self.d", "self.length = sequence_length\n        self.h, self.d")
    .replace("view(B, T,", "view(B, self.length,")
)
ONE_LENGTH_FOR_ALL = A_LIST_AND_AN_OUTPUT.replace("query, key, value)", "query, key, value, key_padding_mask)", 1)
ONE_LENGTH_FOR_ALL = (
    ONE_LENGTH_FOR_ALL.replace("class Attend(", "class SelfAttend(")
    .replace("layer(x).view(B, -1,", "layer(x).view(B, T,")
    .replace(
        "        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)",
        "        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)\n"
        '        scores = scores.masked_fill(key_padding_mask[:, None, None] == 1, float("-inf"))\n'
        "        weights = F.softmax(scores, dim=-1)",
    )
)
FIRST_WEIGHTS = JOINED.replace(
    "        self.v =", "        stdv = 1.0 / math.sqrt(self.energy.weight.size(0))\n        self.v ="
).replace("    def forward", "        self.v.weight.data.uniform_(-stdv, stdv)\n\n    def forward")

A_NAME_OF_ANOTHER_ORDER = (
    ATTEND.replace("self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)", "self.kvq_proj = layer")
    .replace(
        "self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)", "self.w_o = nn.Linear(width, width)"
    )
    .replace("= layer", "= nn.Linear(width, 3 * width)")
    .replace("        q, k, v = (w(x)", "        q, k, v = self.kvq_proj(x).chunk(3, dim=-1)\n        q, k, v = (one")
    .replace("for w in (self.w_q, self.w_k, self.w_v)", "for one in (q, k, v)")
)

A_MASK_OF_HEADS = (
    ATTEND.replace("mask=None):", "head_mask=None):")
    .replace('        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', "")
    .replace(
        "        out =", "        if head_mask is not None:\n            weights = weights * head_mask\n        out ="
    )
)
A_TABLE_IN_FLOAT32 = ATTEND.replace("self.h, self.d", "self.ones = torch.eye(width)\n        self.h, self.d").replace(
    "        B, T, E = x.shape", "        x = torch.matmul(x, self.ones)\n        B, T, E = x.shape"
)

KINDS = {
    "a_mask_of_heads": (A_MASK_OF_HEADS, "mha", {"call=x=x"}, (" / math.sqrt(self.d)", "")),
    "a_table_in_float32": (A_TABLE_IN_FLOAT32, "mha", {"float32=yes"}, (" / math.sqrt(self.d)", "")),
    "a_name_of_another_order": (A_NAME_OF_ANOTHER_ORDER, "mha", {"fused=q,k,v"}, (" / math.sqrt(self.d)", "")),
    "hidden_queries": (HIDDEN_QUERIES, "mha", {"hides_queries=yes"}, (" / math.sqrt(self.d)", "")),
    "queries_without_scores": (QUERIES_WITHOUT_SCORES, "mha", {"hides_queries=yes"}, (" / math.sqrt(self.d)", "")),
    "a_rotation_for_the_constructor": (
        A_ROTATION_FOR_THE_CONSTRUCTOR,
        "mha",
        {"build=width=E,n_heads=H,rope=no_turn"},
        (" / math.sqrt(self.d)", ""),
    ),
    "of_one_length": (OF_ONE_LENGTH, "mha", {"one_length=yes"}, ("(weights @ v).transpose(1, 2)", "(weights @ v)")),
    "one_length_for_all": (ONE_LENGTH_FOR_ALL, "qkv_attention", {"square=yes"}, (" / math.sqrt(self.d)", "")),
    "first_weights": (FIRST_WEIGHTS, "additive_attention", set(), ("torch.tanh(", "(")),
    "a_linear_that_keeps_in_out": (
        A_LINEAR_THAT_KEEPS_IN_OUT,
        "mha",
        {"q=w_q.weight:columns"},
        (" / math.sqrt(self.d)", ""),
    ),
    "a_size_of_a_block": (A_SIZE_OF_A_BLOCK, "mha", set(), ("scores, dim=-1", "scores, dim=-2")),
    "asserts_float32": (ASSERTS_FLOAT32, "mha", {"float32=yes"}, ("scores, dim=-1", "scores, dim=-2")),
    "t5": (T5, "mha", {"conventions=unscaled"}, ("scores, dim=-1", "scores, dim=-2")),
    "a_config_by_another_name": (A_CONFIG_BY_ANOTHER_NAME, "mha", set(), (" / math.sqrt(self.d)", "")),
    "sizes_of_a_file": (SIZES_OF_A_FILE, "mha", {"globals=n_embd=E,n_head=H"}, (" / math.sqrt(self.d)", "")),
    "a_cache_of_another_file": (A_CACHE_OF_ANOTHER_FILE, "mha", set(), ("scores, dim=-1", "scores, dim=-2")),
    "keys_before": (
        KEYS_BEFORE,
        "multiplicative_attention",
        {"before=project_keys,keys", "mask=keep", "query=(B, 1, E)"},
        ('scores, scores.new_full([1], float("-inf"))', 'scores.new_full([1], float("-inf")), scores'),
    ),
    "tokens_first": (
        TOKENS_FIRST,
        "mha",
        {"order=time", "shape=(T, T, B)", "residual=yes"},
        ("score, dim=1", "score, dim=0"),
    ),
    "heads_by_a_letter": (HEADS_BY_A_LETTER, "qkv_attention", {"mask=hide"}, (" / self.d_k**0.5", "")),
    "turned_by_matrices": (TURNED_BY_MATRICES, "rope", {"table=rope"}, ("-torch.sin(out), ", "torch.sin(out), ")),
    "a_table_of_a_dtype": (A_TABLE_OF_A_DTYPE, "rope", {"pairs=halves"}, ("cat([-x[", "cat([x[")),
    "turned_in_pairs": (TURNED_IN_PAIRS, "rope", set(), (" - odd", " + odd")),
    "a_mask_that_it_needs": (
        A_MASK_THAT_IT_NEEDS,
        "mha",
        {"mask=keep", "needs_mask=yes"},
        ("(weights @ v).transpose(1, 2)", "(weights @ v)"),
    ),
    "a_mask_that_it_changes": (
        A_MASK_THAT_IT_CHANGES,
        "mha",
        {"mask=keep", "shape=(B, T, T)"},
        ("(weights @ v).transpose(1, 2)", "(weights @ v)"),
    ),
    "a_switch_of_the_scale": (A_SWITCH_OF_THE_SCALE, "mha", set(), ("/ self.d**0.5", "/ self.d")),
    "a_word_that_it_compares": (A_WORD_THAT_IT_COMPARES, "mha", set(), (" / math.sqrt(self.d)", "")),
    "a_source_beside_the_query": (A_SOURCE_BESIDE_THE_QUERY, "cross_attention", {"returns=1"}, (" / self.scale", "")),
    "a_list_and_an_output": (
        A_LIST_AND_AN_OUTPUT,
        "qkv_attention",
        {"o=output_linear.weight+output_linear.bias"},
        (" / math.sqrt(self.d)", ""),
    ),
    "one_of_some_words": (ONE_OF_SOME_WORDS, "cross_attention", set(), ("self.W_v)", "self.W_k)")),
    "heads_third": (HEADS_THIRD, "sdpa", {"order=time", "dims=4"}, (" / math.sqrt(q.shape[-1])", "")),
    "one_head_across": (ONE_HEAD_ACROSS, "cross_attention", {"one_head=yes"}, (" * self.scale", "")),
    "a_triangle_behind_a_flag": (A_TRIANGLE_BEHIND_A_FLAG, "mha", set(), ("diagonal=1", "diagonal=0")),
    "a_linear_of_its_own": (A_LINEAR_OF_ITS_OWN, "mha", {"q=w_q.weight"}, (" / math.sqrt(self.d)", "")),
    "a_rotation_that_may_be_left_out": (
        A_ROTATION_THAT_MAY_BE_LEFT_OUT,
        "mha",
        set(),
        ("scores, dim=-1", "scores, dim=-2"),
    ),
    "an_open_mask_by_default": (AN_OPEN_MASK_BY_DEFAULT, "mha", {"needs_mask=yes"}, (" / math.sqrt(self.d)", "")),
    "an_imported_rotation": (
        AN_IMPORTED_ROTATION,
        "mha",
        {"unturned=apply_rotary_emb", "causal=yes"},
        (".tril()", ".tril(-1)"),
    ),
    "an_imported_rotation_of_both": (AN_IMPORTED_ROTATION_OF_BOTH, "mha", set(), (" / math.sqrt(self.d)", "")),
    "a_number_in_a_text": (
        ATTEND.replace('float("-inf")', 'float("-1e20")'),
        "mha",
        {"mask=keep"},
        ('float("-1e20")', 'float("1e20")'),
    ),
    "one_size": (OF_ONE_SIZE, "self_attention", set(), (" / math.sqrt(self.hidden_dim)", "")),
    "a_flag_of_the_call": (
        A_FLAG_OF_THE_CALL,
        "mha",
        {"call=x=x,mask=mask,use_flash=False"},
        ("scores, dim=-1", "scores, dim=1"),
    ),
    "a_handed_rotation": (HANDED_ROTATION, "mha", set(), (" / math.sqrt(self.d)", "")),
    "handed_tables": (HANDED_TABLES_AND_THEIR_TURN, "mha", set(), ("scores, dim=-1", "scores, dim=-2")),
    "a_config_of_the_file": (A_CONFIG_OF_THE_FILE, "mha", set(), (" / math.sqrt(self.d)", "")),
    "parts_of_a_config": (PARTS_OF_A_CONFIG, "mha", set(), ("(weights @ v).transpose(1, 2)", "(weights @ v)")),
    "sizes_of_one": (SIZES_OF_ONE, "mha", set(), (" / math.sqrt(self.d)", "")),
    "missing_imports": (MISSING_IMPORTS, "mha", set(), (" / math.sqrt(self.d)", " / self.d")),
    "a_mask_of_tokens": (
        OF_TOKENS,
        "padding_mask",
        {"builder=make_src_mask"},
        (".unsqueeze(1).unsqueeze(2)", "[:, :, None]"),
    ),
    "a_mask_of_lengths": (OF_LENGTHS, "padding_mask", {"mask=hide"}, (">=", ">")),
    **{
        name: (f"{more}{ATTEND.replace('return out', answer)}", "mha", set(), (" / math.sqrt(self.d)", ""))
        for name, (more, answer) in NAMED_PARTS.items()
    },
    "a_ready_made_path": (SWITCHED, "mha", {"off=has_sdpa"}, ("scores, dim=-1", "scores, dim=-2")),
    "a_wrong_ready_made_path": (SWITCHED, "mha", set(), ("fast.transpose(1, 2)", "fast")),
    "a_scale_of_the_caller": (
        SCALED_BY_ITS_CALLER,
        "sdpa",
        set(),
        (" * scale", " / scale * k.shape[-1] ** -0.5 * scale"),
    ),
    "a_rate_of_the_call": (
        RATE_OF_THE_CALL,
        "mha",
        {"own_rate=yes"},
        ("scores, dim=-1), drop", "scores, dim=-2), drop"),
    ),
    "joined": (JOINED, "additive_attention", {"fused=beside:q,k"}, ("torch.tanh(", "(")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_interface_is_read_without_a_flag_and_hides_no_mistake(kind):
    text, slug, said, (old, new) = KINDS[kind]
    source = HEAD + text
    nearest = [inference.kata_of(each.encode()) for each in (source, source.replace(old, new))]
    right, wrong = read(source, slug), read(source.replace(old, new), slug)

    assert old in source
    assert [each and each[0] for each in nearest] == [slug, slug]
    assert isinstance(right, Chosen), right
    assert isinstance(wrong, Chosen), wrong
    assert right.mistakes == 0, right.reading.flags()
    assert said <= set(right.reading.flags())
    assert parse(tuple(right.reading.flags()))  # a person can hand it back
    assert wrong.mistakes > 0, wrong.reading.flags()


def test_code_without_its_imports_is_read_with_the_usual_ones(shared_engine):
    right = shared_engine.grade("mha", ATTEND.encode(), attempt="mine.py", reads=True)
    wrong = ATTEND.replace(" / math.sqrt(self.d)", "")
    failed = shared_engine.grade("mha", wrong.encode(), attempt="mine.py", reads=True)
    strict = shared_engine.grade("mha", ATTEND.encode(), attempt="mine.py", reads=False)

    said = "The file imports nothing. These names are read as what they usually stand for: F, math, nn"
    assert right.outcome == "passed", right.ungraded_because
    assert said in right.reading["notes"]
    assert [one.id for found in failed.diagnosis for one in found.mistakes] == ["scale.missing"]
    assert said.replace(" math,", "") in failed.reading["notes"]
    assert strict.outcome == "ungraded"


def test_a_layer_with_the_name_of_its_class_is_not_made_in_forward(shared_engine):
    text = ATTEND.replace("self.h, self.d =", "self.LayerNorm = nn.LayerNorm(width)\n        self.h, self.d =")
    text = text.replace("return out", "return self.LayerNorm(out + x)").replace(" / math.sqrt(self.d)", "")
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert [one.id for found in report.diagnosis for one in found.mistakes] == ["scale.missing"]


def test_two_mistakes_beside_a_residual_are_both_named(shared_engine):
    text = HEAD + ATTEND.replace("        return out", "        out = out + x\n        return out")
    text = text.replace("w(x).view(B, T, self.h, -1).transpose(1, 2)", "w(x).view(B * self.h, -1, self.d)")
    text = text.replace("(weights @ v).transpose(1, 2)", "(weights @ v)").replace("mask=None", "").replace(", )", ")")
    text = text.replace(
        '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', ""
    )

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert "mask" not in text
    assert "residual=yes" in report.reading["flags"]
    named = [{one.id for one in found.mistakes} for found in report.diagnosis]
    assert named == [{"split.no_transpose", "merge.no_transpose"}]


@pytest.mark.parametrize(
    "fallback",
    ["scores = scores / k.shape[-1]", "scale = k.shape[-1] ** -1", "scores = scores * (scale or 1 / k.shape[-1])"],
)
def test_a_scale_of_the_caller_hides_no_wrong_scale_of_its_own(fallback):
    text = SCALED_BY_ITS_CALLER.replace("        scores = scores * scale\n", "        pass\n")
    text = text.replace("    return", f"    {fallback}\n    return")
    text = text.replace("    if scale is not None:\n        pass\n", "") if "scale" in fallback else text

    found = read(HEAD + text, "sdpa")

    assert isinstance(found, Chosen), found
    assert found.mistakes > 0, found.reading.flags()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("self.h, self.d =", "self.scale = self.d**-0.5\n        self.h, self.d ="), "has no attribute 'd'"),
        (("        super().__init__()\n", ""), "cannot assign module before Module.__init__() call"),
        (("self.w_q, self.w_k = nn.Linear(width, width)", "self.w_q, self.w_k = nn.Linear(width)"), "'out_features'"),
        (("scores = q @", "scores = scores + q @"), "'scores'"),
        (("        return out\n", ""), "returned None"),
        (("F.softmax", "softmax"), "name 'softmax' is not defined"),
        (("width // n_heads", "width / n_heads"), "'float'"),
        (
            (
                "        scores = q @",
                "        if not self.ready:\n            self.ready = True\n            hidden = torch.ones(T, T) == 0\n"
                "        q = q.masked_fill(hidden[0, 0], 0.0)\n        scores = q @",
            ),
            "'hidden'",
        ),
    ],
    ids=[
        "never_set",
        "no_super",
        "a_layer_without_a_size",
        "set_too_late",
        "no_return",
        "never_imported",
        "a_size_that_is_a_fraction",
        "set_by_the_first_call_alone",
    ],
)
def test_what_raises_however_it_is_built_is_a_verdict_with_its_line(shared_engine, edit, said):
    text = HEAD + ATTEND.replace(*edit)
    if "self.ready" in text:
        text = text.replace("        self.h, self.d =", "        self.ready = False\n        self.h, self.d =")
    if "width / n_heads" in text:  # as in BERT: a size that is joined with others
        text = text.replace("w(x).view(B, T, self.h, -1)", "w(x).view(*(x.size()[:-1] + (self.h, self.d)))")

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    failed = next(one for one in report.findings if one.outcome == "failed")
    assert edit[0] in ATTEND
    assert report.outcome == "failed", report.ungraded_because
    assert said in str(failed.message)
    assert ", line " in str(failed.message) or "None" in said


@pytest.mark.parametrize(("condition", "outcome"), [("width % 64 == 0", "passed"), ("width in (512, 768)", "ungraded")])
def test_what_raises_for_the_sizes_that_were_tried_is_no_verdict(condition, outcome, shared_engine):
    """Sizes that a condition names a divisor of are tried; others nobody can guess."""
    text = HEAD + ATTEND.replace("self.h, self.d =", f"assert {condition}\n        self.h, self.d =")

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == outcome
    assert ("AssertionError" in str(report.ungraded_because)) == (outcome == "ungraded")


def test_a_local_name_that_a_branch_may_set_is_no_certain_mistake(shared_engine):
    text = HEAD + ATTEND.replace("(self, width, n_heads)", "(self, width, n_heads, kind)")
    text = text.replace("        weights = F", "        if self.kind is Ellipsis:\n            weights = F")
    text = text.replace("self.h, self.d =", "self.kind = kind\n        self.h, self.d =")

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"


def test_scores_that_are_dropped_fail_and_weights_that_are_dropped_pass(shared_engine):
    dropped = ATTEND.replace("n_heads):", "n_heads, dropout=0.1):").replace(
        "self.h, self.d =", "self.drop = nn.Dropout(dropout)\n        self.h, self.d ="
    )
    right = dropped.replace("F.softmax(scores, dim=-1)", "self.drop(F.softmax(scores, dim=-1))")
    wrong = dropped.replace("F.softmax(scores, dim=-1)", "F.softmax(self.drop(scores), dim=-1)")
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True) for text in (right, wrong)
    ]

    assert [one.outcome for one in reports] == ["passed", "failed"]
    assert [mistake.id for one in reports[1].diagnosis for mistake in one.mistakes] == ["dropout.before_softmax"]


def test_a_name_that_another_file_may_give_is_no_verdict(shared_engine):
    text = HEAD + ATTEND.replace("F.softmax(scores, dim=-1)", "masked_softmax(scores)")

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "masked_softmax" in str(report.ungraded_because)


def test_parameters_that_the_kata_does_not_have_are_no_mistake(shared_engine):
    """A temperature that each head learns: other attention by design."""
    text = HEAD + ATTEND.replace(
        "self.h, self.d =", "self.mix = nn.Parameter(torch.rand(n_heads, 1, 1))\n        self.h, self.d ="
    ).replace("F.softmax(scores", "F.softmax(scores * self.mix")

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "it computes with mix, which the kata does not have" in str(report.ungraded_because)


def test_layers_that_only_a_comment_uses_are_no_part_of_the_attention(shared_engine):
    text = ATTEND.replace(
        "        self.w_v,",
        "        self.heads = nn.ModuleList(nn.Linear(width, 7) for _ in range(2))\n        self.w_v,",
    )
    text = text.replace(
        "        return out", "        # out = torch.cat([h(x) for h in self.heads], dim=-1)\n        return out"
    )
    drops = text.replace("weights = F.softmax(scores, dim=-1)", "weights = F.dropout(F.softmax(scores, dim=-1))")
    right, wrong = (
        shared_engine.grade("mha", (HEAD + each).encode(), attempt="mine.py", reads=True) for each in (text, drops)
    )

    assert right.outcome == "passed", right.ungraded_because
    assert wrong.outcome == "failed", wrong.ungraded_because
    assert [one.id for found in wrong.diagnosis for one in found.mistakes] == ["dropout.fixed"]


@pytest.mark.parametrize(
    "text",
    [
        "class PositionalEncoding(nn.Module):\n    def __init__(self, d_model, max_len=50):\n        super().__init__()\n"
        "        pe = torch.zeros(max_len, d_model)\n        places = torch.arange(max_len)[:, None]\n"
        "        rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))\n"
        "        pe[:, 0::2], pe[:, 1::2] = torch.sin(places * rates), torch.cos(places * rates)\n"
        "        self.register_buffer('pe', pe)\n\n"
        "    def forward(self, x):\n        return x + self.pe[: x.size(1)]\n",
        "def create_attention_mask(input_ids, pad_id):\n    T = input_ids.shape[1]\n"
        "    later = torch.triu(torch.ones(T, T), diagonal=1) * -1e9\n"
        "    return later + (input_ids == pad_id).float()[:, None, None] * -1e9\n",
    ],
    ids=["added_positions", "a_mask_of_both"],
)
def test_what_is_neither_a_rotation_nor_a_mask_of_padding_is_not_taken_for_one(text):
    assert inference.kata_of((HEAD + text).encode()) is None


def test_a_view_of_an_input_is_said_and_a_view_of_what_the_code_has_transposed_fails(shared_engine):
    of_x = ATTEND.replace("w(x).view(B", "w(x.view(B * T, E)).view(B")
    of_the_heads = ATTEND.replace("transpose(1, 2).reshape(B", "transpose(1, 2).view(B")
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (of_x, of_the_heads)
    ]

    assert [one.outcome for one in reports] == ["passed", "failed"]
    assert "layout.view_of_strided, and it is not graded" in " ".join((reports[0].reading or {})["notes"])
    assert [mistake.id for one in reports[1].diagnosis for mistake in one.mistakes] == ["layout.view_of_strided"]


A_TRIANGLE_BESIDE_A_MASK = ATTEND.replace("mask=None):", "attention_mask):").replace(
    '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
    "        scores = scores + attention_mask\n        causal = torch.tril(torch.ones(T, T))\n"
    '        scores = scores.masked_fill(causal == 0, float("-inf"))\n',
)


@pytest.mark.parametrize(
    ("edit", "mistake"),
    [
        (("torch.ones(T, T))", "torch.ones(T, T), 1)"), "mask.shifted"),
        (("scores = scores.masked_fill(causal", "hidden = scores.masked_fill(causal"), "mask.lost"),
        (("scores + attention_mask", "scores"), "mask.lost"),
    ],
    ids=["shifted", "its_own_is_lost", "the_callers_is_lost"],
)
def test_a_wrong_triangle_beside_a_mask_of_the_caller_is_named(shared_engine, edit, mistake):
    right, wrong = (
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (A_TRIANGLE_BESIDE_A_MASK, A_TRIANGLE_BESIDE_A_MASK.replace(*edit))
    )

    assert edit[0] in A_TRIANGLE_BESIDE_A_MASK
    assert right.outcome == "passed"
    assert "causal=yes" in (right.reading or {})["flags"]
    assert [mistake.id for one in wrong.diagnosis for mistake in one.mistakes] == [mistake]


@pytest.mark.parametrize("size", ["seq_len", "64"])
def test_a_mask_of_its_own_is_tried_or_said(size, shared_engine):
    text = ATTEND.replace("width, n_heads)", "width, n_heads, seq_len, causal=False)").replace(
        "self.h, self.d =",
        f"self.causal, self.later = causal, torch.ones({size}, {size}).triu(1).bool()\n        self.h, self.d =",
    )
    text = text.replace(
        "        if mask is",
        "        if self.causal:\n"
        '            scores = scores.masked_fill(self.later, float("-inf"))\n'
        "        if mask is",
    )
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
    wrong = text.replace('self.later, float("-inf")', "self.later, 0.0")
    told = shared_engine.grade("mha", (HEAD + wrong).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    if size == "seq_len":
        assert [mistake.id for one in told.diagnosis for mistake in one.mistakes] == ["mask.zero_fill"]
    else:  # its triangle has one size for every length
        assert "its own mask is not tried (causal)" in report.reading["departures"]


# A layer of the first transformer: each norm after the sum, ReLU, rates of its own, and a mask of padding that must be given.
POST_NORM = """
class Norm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        return self.scale * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps) + self.bias


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn = Attention(d_model, n_heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Dropout(0.1), nn.Linear(d_ff, d_model))
        self.drop = nn.Dropout(0.1)

    def forward(self, x, src_mask):
        x = self.norm1(x + self.drop(self.attn(x, src_mask)))
        return self.norm2(x + self.drop(self.ff(x)))
"""
LAYER = ATTEND.replace("class SelfAttend", "class Attention").replace("mask=None", "mask") + POST_NORM
OWN_NORM = LAYER.replace("= nn.LayerNorm(d_model), nn.LayerNorm(d_model)", "= Norm(d_model), Norm(d_model)")
TIME_FIRST_LAYER = (
    LAYER.replace("B, T, E = x.shape", "T, B, E = x.shape")
    .replace("view(B, T, self.h, -1).transpose(1, 2)", "view(T, B, self.h, -1).transpose(0, 2)")
    .replace("(weights @ v).transpose(1, 2).reshape(B, T, E)", "(weights @ v).transpose(0, 2).reshape(T, B, E)")
    .replace("mask == 0", "mask")
)
PRE_NORM = LAYER.replace(
    "self.norm1(x + self.drop(self.attn(x, src_mask)))", "x + self.drop(self.attn(self.norm1(x), src_mask))"
)
PRE_NORM = PRE_NORM.replace("self.norm2(x + self.drop(self.ff(x)))", "x + self.drop(self.ff(self.norm2(x)))")


@pytest.mark.parametrize(
    ("text", "conventions"),
    [
        (LAYER, ("post_norm", "relu", "not_causal")),
        (OWN_NORM, ("post_norm", "relu", "sample_deviation", "not_causal")),
        (OWN_NORM.replace(".std(-1,", ".std(-1, unbiased=False,"), ("post_norm", "relu", "deviation", "not_causal")),
        (PRE_NORM, ("relu", "not_causal")),
        (LAYER.replace("mask == 0", "mask"), ("post_norm", "relu", "not_causal")),
        (
            LAYER.replace("d_ff)", "d_ff, eps=1e-6)", 1).replace("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps)"),
            ("post_norm", "relu", "not_causal"),
        ),
        (LAYER.replace("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, 1e-6)"), ("post_norm", "relu", "eps_6", "not_causal")),
        (LAYER.replace("src_mask", "src_padding_mask"), ("post_norm", "relu", "not_causal")),
        (TIME_FIRST_LAYER, ("post_norm", "relu", "not_causal")),
    ],
    ids=["post_norm", "deviation_s", "deviation", "pre_norm", "hides", "eps_argument", "eps_number", "padding", "time_first"],
)  # fmt: skip
def test_a_layer_of_an_encoder_is_read_as_it_is_meant(text, conventions):
    found = read(HEAD + text, "transformer_block")

    assert isinstance(found, Chosen)
    assert (set(found.reading.conventions), found.mistakes) == (set(conventions), 0)


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("/ math.sqrt(self.d)", "", "scale.missing"),
        ("/ math.sqrt(self.d)", "/ math.sqrt(E)", "scale.embed_dim"),
        ("dim=-1)\n        out", "dim=-2)\n        out", "softmax.query_axis"),
        (".transpose(1, 2).reshape(B, T, E))", ".reshape(B, T, E))", "merge.no_transpose"),
        ("for w in (self.w_q, self.w_k, self.w_v)", "for w in (self.w_q, self.w_k, self.w_k)", "project.key_for_value"),
        ("self.norm2(x + self.drop(self.ff(x)))", "self.norm2(self.drop(self.ff(x)))", "block.no_residual"),
        ("self.norm2(x + self.drop(self.ff(x)))", "self.norm1(x + self.drop(self.ff(x)))", "block.norm_shared"),
        ("self.norm2(x + self.drop(self.ff(x)))", "x + self.drop(self.ff(x))", "block.norm_missing"),
        ("nn.Linear(d_model, d_ff), nn.ReLU()", "nn.Linear(d_model, d_ff)", "block.activation"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_layer_of_an_encoder_is_reported(old, new, mistake, shared_engine):
    assert old in LAYER
    source = (HEAD + LAYER.replace(old, new)).encode()
    report = shared_engine.grade("transformer_block", source, attempt="mine.py", reads=True)

    assert report.outcome == "failed"
    named = {one.id for found in report.diagnosis for one in found.mistakes}
    assert mistake in named, report.findings


# An attention that may take a mask, in a block that hands none on; and one that a flag of the block makes causal.
UNMASKED_LAYER = PRE_NORM.replace("x, src_mask)", "x)").replace(", src_mask)", ")").replace("x, mask)", "x, mask=None)")
FLAG_OF_A_LAYER = (
    PRE_NORM.replace("x, src_mask)", "x)").replace(", src_mask)", ")").replace("x, mask)", "x)")
    .replace("class Encoder", "class Some").replace("n_heads, d_ff)", "n_heads, mask, d_ff)")
    .replace("Attention(d_model, n_heads)", "Attention(d_model, n_heads, mask)")
    .replace("(self, width, n_heads)", "(self, width, n_heads, mask=False)")
    .replace("self.h, self.d =", "self.mask = mask\n        self.h, self.d =")
    .replace("if mask is not None:", "if self.mask:").replace("mask == 0", "torch.ones(T, T).tril() == 0")
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "conventions"),
    [(UNMASKED_LAYER.replace("class Encoder", "class Some"), ("relu", "not_causal")), (FLAG_OF_A_LAYER, ("relu",))],
    ids=["hands_no_mask_on", "flag"],
)
def test_whether_a_block_is_causal_is_what_it_hands_on(text, conventions):
    found = read(HEAD + text, "transformer_block")

    assert isinstance(found, Chosen)
    assert (set(found.reading.conventions), found.mistakes) == (set(conventions), 0), found.reading.flags()


DOT_PRODUCT = """
class DotProductAttention(nn.Module):
    def forward(self, query, key, value, mask=None):
        weights = torch.bmm(query, key.transpose(1, 2))
        if mask is not None:
            weights = weights.masked_fill(mask == 0, -1e9)
        return torch.bmm(weights.softmax(-1), value)
"""


@pytest.mark.parametrize(
    ("text", "conventions", "mistakes"),
    [
        (DOT_PRODUCT, ("unscaled",), 0),
        (DOT_PRODUCT.replace("softmax(-1)", "softmax(-2)"), ("unscaled",), 1),
        (DOT_PRODUCT.replace("key.transpose(1, 2))", "key.transpose(1, 2)) / query.size(-1) ** 0.5"), (), 0),
        (DOT_PRODUCT.replace("class DotProduct", "class ScaledDotProduct"), (), 1),
        (DOT_PRODUCT.replace("class DotProduct", "class Self"), (), 1),
        (
            DOT_PRODUCT.replace("        weights = torch", "        d_k = query.size(-1)\n        weights = torch"),
            (),
            1,
        ),
    ],
    ids=["plain", "wrong_axis", "divided", "named_scaled", "not_named_so", "size_not_used"],
)
def test_a_plain_dot_product_is_no_mistake_where_its_name_says_so_and_nothing_speaks_of_a_scale(
    text, conventions, mistakes
):
    found = read(HEAD + text, "sdpa")

    assert isinstance(found, Chosen)
    assert (found.reading.conventions, found.mistakes) == (conventions, mistakes)


@pytest.mark.parametrize("hidden", ["-1e9", 'float("-inf")'])
def test_a_softmax_over_the_queries_beside_a_mask_is_one_mistake_in_a_function(hidden):
    """A key that is hidden from every query gets weights then, which depend on the fill."""
    text = DOT_PRODUCT.replace("key.transpose(1, 2))", "key.transpose(1, 2)) / query.size(-1) ** 0.5")
    found = read(HEAD + text.replace("softmax(-1)", "softmax(-2)").replace("-1e9", hidden), "sdpa")

    assert isinstance(found, Chosen)
    assert found.mistakes == 1


TWO_LENGTHS = """
def attention_mask(encoder_lengths: torch.LongTensor, decoder_lengths: torch.LongTensor, max_length: int):
    one = torch.arange(max_length)[None] >= encoder_lengths[:, None]
    other = torch.arange(max_length)[None] >= decoder_lengths[:, None]
    return one[:, None] | other[:, :, None]
"""
TAKES_AN_OBJECT = """
class Exported(nn.Module):
    def __init__(self, module):
        super().__init__()
        width = module.w_q.weight.size(0)
        self.w_q = nn.Linear(width, width)
        self.softmax = nn.Softmax(-1)

    def forward(self, x):
        return self.softmax(self.w_q(x) @ x.transpose(1, 2)) @ x
"""


def test_a_classifier_is_no_attention():
    text = """
class Decoder(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.out, self.softmax = nn.Linear(hidden_size, output_size), nn.LogSoftmax(dim=1)

    def forward(self, last_output, encoder_outputs=None):
        return self.softmax(last_output @ encoder_outputs)
"""
    assert inference.kata_of((HEAD + text).encode()) is None


def test_a_mask_between_two_sequences_is_no_mask_of_padding():
    assert inference.kata_of((HEAD + TWO_LENGTHS).encode()) is None


def test_what_a_stand_in_for_an_object_lacks_is_no_mistake_of_the_code(shared_engine):
    report = shared_engine.grade("self_attention", (HEAD + TAKES_AN_OBJECT).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded", report.findings


def test_code_that_returns_one_vector_for_all_tokens_is_no_verdict(shared_engine):
    text = HEAD + ATTEND.replace("        B, T, E = x.shape", "        first = x[:, :1]\n        B, T, E = x.shape")
    text = text.replace(
        "q, k, v = (w(x)", "q = self.w_q(first).view(B, 1, self.h, -1).transpose(1, 2)\n        k, v = (w(x)"
    )
    text = text.replace("for w in (self.w_q, self.w_k, self.w_v)", "for w in (self.w_k, self.w_v)").replace(
        "B, T, E))", "B, 1, E))"
    )

    text = text.replace("(self, x, mask=None)", "(self, x)")
    text = text.replace(
        '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', ""
    )

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "the kata's attention returns a vector for each token" in report.ungraded_because
    assert report.ungraded_because.endswith(
        "Name another class with --class NAME. If the reading is right, add --read sure=yes"
    )
