"""Kinds of public code, in our own words: each is read without a flag, and its mistakes are not hidden."""

from __future__ import annotations

import pytest
from tests.readings import adapter
from tests.readings.test_search import read

from attn_kata.readings import inference
from attn_kata.readings.choice import Chosen
from attn_kata.readings.reading import parse
from attn_kata.readings.searching import certain

HEAD = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"

ONE_KEY_HEAD = """
class SharedKeys(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, width // n_heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, self.head_dim)
        self.value = nn.Linear(width, self.head_dim)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.query(x).view(B, T, self.n_heads, -1).transpose(1, 2)
        k, v = self.key(x)[:, None], self.value(x)[:, None]
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.head_dim**0.5, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, -1))
"""

ONE_KEY_HEAD_FUSED = """
class SharedKeys(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.width, self.n_heads, self.head_dim = width, n_heads, width // n_heads
        self.joined = nn.Linear(width, width + 2 * self.head_dim)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.joined(x).split([self.width, self.head_dim, self.head_dim], dim=-1)
        q = q.view(B, T, self.n_heads, -1).transpose(1, 2)
        weights = torch.softmax(q @ k[:, None].transpose(-2, -1) / self.head_dim**0.5, dim=-1)
        return self.out((weights @ v[:, None]).transpose(1, 2).reshape(B, T, -1))
"""

CALLERS_DROPOUT = """
def weigh(query, key, value, dropout=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    return dropout(F.softmax(scores, dim=-1)) @ value
"""

TIME_FIRST_AND_NONE = """
class Attend(nn.Module):
    def __init__(self, width, n_heads, dropout):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value):
        tgt_len, batch, width = query.shape
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        q, k, v = (one.contiguous().view(-1, batch * self.h, self.d).transpose(0, 1) for one in (q, k, v))
        weights = self.dropout(F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d), dim=-1))
        attn = torch.bmm(weights, v).transpose(0, 1).contiguous().view(tgt_len, batch, width)
        attn = self.w_o(attn)
        return attn, None
"""

AS_MANY_KEYS = """
class SelfAttend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, q, k, v):
        B, T, E = q.shape
        q, k, v = (one.view(B, T, self.h, -1).transpose(1, 2) for one in (self.w_q(q), self.w_k(k), self.w_v(v)))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(E // self.h), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""

WITH_AN_OUTPUT_LAYER = """
class SelfAttention(nn.Module):
    def __init__(self, width, dropout=0.1):
        super().__init__()
        self.width = width
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        weights = self.dropout(F.softmax(q @ k.transpose(1, 2) / self.width**0.5, dim=-1))
        return self.out_proj(weights @ v)
"""

ONE_SEQUENCE = """
class Attend(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        T = x.shape[0]
        q, k, v = (layer(x).view(T, self.h, self.d).permute(1, 0, 2) for layer in (self.w_q, self.w_k, self.w_v))
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d), dim=-1)
        out = self.w_o(torch.bmm(weights, v).permute(1, 0, 2).reshape(T, -1))
        return out, weights
"""

ONE_MATRIX = """
class Mix(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.linear = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, h_src, h_tgt, mask=None):
        query = self.linear(h_tgt.squeeze(1)).unsqueeze(-1)
        weight = torch.bmm(h_src, query).squeeze(-1)
        if mask is not None:
            # A weight is -inf, if the mask equals to 1. The softmax sets -inf to 0, masked weights too.
            weight = weight.masked_fill(mask, -float("inf"))
        return torch.bmm(F.softmax(weight, dim=-1).unsqueeze(1), h_src)
"""

A_WIDTH_BY_ITS_LAYERS = """
class Attend(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.W_Q = nn.Linear(config.d_hidn, config.n_head * config.d_head)
        self.W_K = nn.Linear(config.d_hidn, config.n_head * config.d_head)
        self.W_V = nn.Linear(config.d_hidn, config.n_head * config.d_head)
        self.linear = nn.Linear(config.n_head * config.d_head, config.d_hidn)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (w(x).view(B, T, self.config.n_head, -1).transpose(1, 2) for w in (self.W_Q, self.W_K, self.W_V))
        weights = F.softmax(q @ k.transpose(-2, -1) / self.config.d_head**0.5, dim=-1)
        return self.linear((weights @ v).transpose(1, 2).reshape(B, T, -1))
"""

A_ROTATION_OF_EITHER = """
def turned_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)

def apply_rotary(query_or_key, cos_values, sin_values):
    return query_or_key * cos_values + turned_half(query_or_key) * sin_values
"""

ONE_WIDTH = """
class CrossAttend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, context):
        B, T, E = x.shape
        _, S, C = context.shape
        q = self.w_q(x).view(B, T, self.h, E // self.h).transpose(1, 2)
        k, v = (w(context).view(B, S, self.h, C // self.h).transpose(1, 2) for w in (self.w_k, self.w_v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(E // self.h), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""

IN_FLOAT32 = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2).float() for w in (self.w_q, self.w_k, self.w_v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(E // self.h), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""

SIZES_ELSEWHERE = """
class Head(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        T = x.shape[1]
        q, k = self.query(x), self.key(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ self.value(x)

class Heads(nn.Module):
    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = nn.ModuleList([Head(head_size) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([one(x) for one in self.heads], dim=-1))
"""

A_MISSPELT_SWITCH = """
class Attend(nn.Module):
    def __init__(self, n_heads, width):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.joined = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, casual_mask=False):
        B, T, E = x.shape
        q, k, v = (one.view(B, T, self.h, self.d).transpose(1, 2) for one in self.joined(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d)
        if casual_mask:
            later = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        return self.out((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""

A_RATE_OF_ITS_OWN = A_MISSPELT_SWITCH.replace(
    "F.softmax(scores, dim=-1)", "F.dropout(F.softmax(scores, dim=-1), p=0.1, training=self.training)"
)

LENGTHS_OF_KEYS = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, only_before: bool = False, key_padding_lengths=None):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(E // self.h)
        if only_before:
            scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
        if key_padding_lengths is not None:
            hidden = torch.arange(T)[None] >= key_padding_lengths[:, None]
            scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
        return self.w_o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""

# Nothing says which of x and y the queries are made of, or that they may differ in length.
OF_X_AND_Y = """
class CrossAttend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.q_layer, self.kv_layer = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, y, mask):
        B, T, E = x.size()
        q = self.q_layer(y).reshape(B, T, self.h, self.d).permute(0, 2, 1, 3)
        k, v = self.kv_layer(x).reshape(B, T, self.h, 2 * self.d).permute(0, 2, 1, 3).chunk(2, dim=-1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d)
        if mask is not None:
            scores = (scores.permute(1, 0, 2, 3) + mask).permute(1, 0, 2, 3)
        return self.out((F.softmax(scores, dim=-1) @ v).permute(0, 2, 1, 3).reshape(B, T, E))
"""

A_TABLE_THAT_TURNS = """
class RotaryTable(nn.Module):
    def __init__(self, head_dim):
        super().__init__()
        half = head_dim // 2
        self.register_buffer("speeds", 10000.0 ** (-torch.arange(half) / half), persistent=False)

    def get_tables(self, length):
        angles = torch.outer(torch.arange(length), self.speeds)
        return torch.cat([angles, angles], dim=-1).cos(), torch.cat([angles, angles], dim=-1).sin()

    def apply_rotary(self, q, k, cos, sin):
        def turned(x):
            first, second = x.chunk(2, dim=-1)
            return torch.cat([-second, first], dim=-1)

        return q * cos + turned(q) * sin, k * cos + turned(k) * sin

class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)
        self.table = RotaryTable(width // n_heads)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        q, k = self.table.apply_rotary(q, k, *self.table.get_tables(T))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(E // self.h), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""

POSITIONS_INSIDE = IN_FLOAT32.replace(".float()", "").replace(
    "        weights =",
    "        angles = torch.arange(T)[:, None] * torch.ones(E // self.h)\n"
    "        k = k + torch.sin(angles)\n        weights =",
)

# The source, the kata that it is nearest to, what its reading says, and an edit with the mistakes that it makes.
OF_TWO_DIMENSIONS = """
def attention(Q, K, V):
    scores = Q @ K.T / math.sqrt(K.shape[1])
    return torch.softmax(scores, dim=1) @ V
"""

# It raises for no number of dimensions: read for two alone, a softmax along dimension 1 would be right.
OF_ANY = """
def attention(Q, K, V):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(K.shape[-1])
    return F.softmax(scores, dim=-1) @ V
"""

OF_ONE_SHAPE = """
def attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = torch.add(scores, mask.unsqueeze(1).unsqueeze(2))
    out = torch.matmul(torch.softmax(scores, dim=-1), value)
    assert out.size() == query.size() == key.size() == value.size(), "not of one size"
    return out
"""

HEADS_SIDE_BY_SIDE = """
def attention(q, k, v, num_heads):
    B, T, E = q.shape
    q, k, v = (one.view(B, T, num_heads, E // num_heads).transpose(1, 2) for one in (q, k, v))
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(E // num_heads), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(B, T, E)
"""

ONE_PAIR_OF_SEQUENCES = """
class CrossAttend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def split(self, x):
        T, E = x.shape
        return x.reshape(T, self.h, E // self.h).transpose(0, 1)

    def forward(self, x, context):
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(context)), self.split(self.w_v(context))
        weights = F.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), dim=-1)
        return self.w_o((weights @ v).transpose(0, 1).reshape(len(x), -1))
"""

# With a mask it raises always; what is wrong without one is named all the same.
RAISES_WITH_A_MASK = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.view(B, T, -1, 7).masked_fill(mask == 0, float("-inf"))
        return self.w_o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, E))
"""

A_COMPILED_ROTATION = """
@torch.jit.script
def apply_rotary(x, cos, sin):
    return x * cos + torch.cat((-x[..., 1::2], x[..., ::2]), dim=-1) * sin
""" + IN_FLOAT32.replace(".float()", "").replace(
    "        weights",
    "        one = torch.ones(T, E // self.h)\n"
    "        q, k = apply_rotary(q, one, one), apply_rotary(k, one, one)\n        weights",
)

THE_SIZE_OF_ONE_HEAD = """
class Attend(nn.Module):
    def __init__(self, input_dim, attention_dim, num_heads):
        super().__init__()
        self.h, self.d = num_heads, attention_dim
        self.w_q, self.w_k = nn.Linear(input_dim, num_heads * self.d), nn.Linear(input_dim, num_heads * self.d)
        self.w_v, self.w_o = nn.Linear(input_dim, num_heads * self.d), nn.Linear(num_heads * self.d, input_dim)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, self.h * self.d))
"""

TOLD_ITS_DEVICE = """
def precompute_freqs(head_dim, seq_len, device, theta=10000.0):
    freqs = theta ** -(torch.arange(0, head_dim, 2, device=device) / head_dim)
    angles = torch.outer(torch.arange(seq_len, device=device), freqs)
    return torch.polar(torch.ones_like(angles), angles)

def apply_rotary(x, freqs_complex, device):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    turned = torch.view_as_real(pairs * freqs_complex.unsqueeze(0).unsqueeze(2))
    return turned.reshape(x.shape).type_as(x).to(device)
"""

KINDS = {
    "one_key_head": (ONE_KEY_HEAD, "gqa", {"one_group=yes"}, (" / self.head_dim**0.5", "")),
    "one_key_head_fused": (ONE_KEY_HEAD_FUSED, "gqa", {"one_group=yes"}, (".transpose(1, 2).reshape(B", ".reshape(B")),
    "callers_dropout": (CALLERS_DROPOUT, "sdpa", set(), ("dim=-1", "dim=-2")),
    "time_first": (TIME_FIRST_AND_NONE, "qkv_attention", {"order=time", "returns=0"}, (" / math.sqrt(self.d)", "")),
    "as_many_keys": (AS_MANY_KEYS, "qkv_attention", {"square=yes"}, ("self.w_v(v)", "self.w_v(k)")),
    "output_layer": (WITH_AN_OUTPUT_LAYER, "self_attention", {"bypassed=out_proj"}, (" / self.width**0.5", "")),
    "one_sequence": (ONE_SEQUENCE, "mha", {"dims=2", "returns=0"}, ("math.sqrt(self.d)", "math.sqrt(self.d * self.h)")),
    "one_matrix": (
        ONE_MATRIX,
        "multiplicative_attention",
        {"query=(B, 1, E)", "mask=hide"},
        ("weight, dim=-1", "weight, dim=0"),
    ),
    "one_width": (ONE_WIDTH, "cross_attention", {"alike=yes"}, ("self.w_q(x)", "self.w_k(x)")),
    "of_x_and_y": (
        OF_X_AND_Y,
        "cross_attention",
        {"square=yes", "call=x=context,y=x,mask=mask"},
        (" / math.sqrt(self.d)", ""),
    ),
    "a_table_that_turns": (
        A_TABLE_THAT_TURNS,
        "mha",
        {"unturned=table.apply_rotary"},
        (" / math.sqrt(E // self.h)", ""),
    ),
    "in_float32": (IN_FLOAT32, "mha", {"float32=yes"}, (" / math.sqrt(E // self.h)", "")),
    "sizes_elsewhere": (
        SIZES_ELSEWHERE,
        "mha",
        {"globals=block_size=L,n_embd=E"},
        ("k.shape[-1] **", "x.shape[-1] **"),
    ),
    "two_dimensions": (OF_TWO_DIMENSIONS, "sdpa", {"dims=2"}, ("dim=1", "dim=0")),
    "softmax_along_1": (OF_ANY, "sdpa", set(), ("dim=-1", "dim=1")),
    "softmax_without_dim": (OF_ANY, "sdpa", set(), (", dim=-1", "")),
    "one_shape": (
        OF_ONE_SHAPE,
        "sdpa",
        {"mask=additive", "square=yes", "alike=yes"},
        (" / math.sqrt(query.size(-1))", ""),
    ),
    "side_by_side": (
        HEADS_SIDE_BY_SIDE,
        "sdpa",
        {"call=q=q,k=k,v=v,num_heads=H", "square=yes"},
        ("transpose(1, 2).reshape(B", "reshape(B"),
    ),
    "one_pair": (ONE_PAIR_OF_SEQUENCES, "cross_attention", {"dims=2"}, ("self.w_v(context)", "self.w_k(context)")),
    "compiled_rotation": (A_COMPILED_ROTATION, "mha", set(), (" / math.sqrt(E // self.h)", "")),
    "size_of_one_head": (
        THE_SIZE_OF_ONE_HEAD,
        "mha",
        {"build=input_dim=E,attention_dim=D,num_heads=H"},
        ("transpose(1, 2).reshape(B", "reshape(B"),
    ),
    "told_its_device": (
        TOLD_ITS_DEVICE,
        "rope",
        {"call=x=q,freqs_complex=turns,device=device"},
        ("/ head_dim)", "/ head_dim * 2)"),
    ),
    "width": (A_WIDTH_BY_ITS_LAYERS, "mha", set(), ("dim=-1", "dim=-2")),
    "a_misspelt_switch": (A_MISSPELT_SWITCH, "mha", set(), (" / math.sqrt(self.d)", "")),
    "a_switch_of_any_name": (
        A_MISSPELT_SWITCH.replace("casual_mask", "look_back"),
        "mha",
        set(),
        ("scores, dim=-1", "scores, dim=-2"),
    ),
    "a_rate_of_its_own": (A_RATE_OF_ITS_OWN, "mha", {"own_rate=yes"}, ("training=self.training", "training=True")),
    "lengths_of_keys": (LENGTHS_OF_KEYS, "mha", {"mask=lengths"}, ("] >= key", "] < key")),
    "rotation": (A_ROTATION_OF_EITHER, "rope", {"pairs=halves"}, ("+ turned_half", "- turned_half")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_public_code_is_read_without_a_flag_and_hides_no_mistake(kind):
    text, slug, said, (old, new) = KINDS[kind]
    source = HEAD + text
    nearest = inference.kata_of(source.encode())
    right, wrong = read(source, slug), read(source.replace(old, new), slug)

    assert nearest is not None
    assert nearest[0] == slug
    assert isinstance(right, Chosen), right
    assert isinstance(wrong, Chosen), wrong
    assert right.mistakes == 0, right.reading.flags()
    assert said <= set(right.reading.flags())
    assert parse(tuple(right.reading.flags()))  # a person can hand it back
    assert old in source
    assert wrong.mistakes > 0, wrong.reading.flags()


def test_what_is_wrong_without_a_mask_is_named_where_every_mask_raises():
    found = read(HEAD + RAISES_WITH_A_MASK, "mha")

    assert isinstance(found, Chosen), found
    assert (found.mistakes, found.mask_untried) == (1, "mask")


ROOT_OF_A_SIZE = (" / math.sqrt(E // self.h)", " / torch.sqrt(q.size(-1))")
NOT_TRANSPOSED = ("k.transpose(1, 2)", "k")


@pytest.mark.parametrize(
    ("text", "slug", "edit"),
    [(IN_FLOAT32, "mha", ROOT_OF_A_SIZE), (WITH_AN_OUTPUT_LAYER, "self_attention", NOT_TRANSPOSED)],
    ids=["root_of_a_size", "not_transposed"],
)
def test_code_that_raises_for_everybody_is_read_and_has_no_doubt(text, slug, edit):
    found = read(HEAD + text.replace(*edit), slug)

    assert edit[0] in text
    assert isinstance(found, Chosen), found
    assert found.mistakes > 0
    assert found.doubt == ""


@pytest.mark.parametrize("size", ["scale", "self.scale", "torch.tensor(self.h)"])
def test_the_root_of_what_may_be_a_tensor_is_no_certain_mistake(size):
    edited = IN_FLOAT32.replace("n_heads):", "n_heads, scale=5):").replace(
        "math.sqrt(E // self.h)", f"torch.sqrt({size})"
    )
    edited = edited.replace("self.h = n_heads", "self.h, self.scale = n_heads, scale")

    assert not certain._is_of_sizes("sqrt", edited)


def test_code_that_computes_in_float32_is_right_as_read_and_says_what_the_contract_calls_it(shared_engine):
    report = shared_engine.grade("mha", (HEAD + IN_FLOAT32).encode(), attempt="mine.py", reads=True)

    assert report.passed, [one for one in report.findings if one.outcome == "failed"]
    assert "numerics.forced_float32" in " ".join((report.reading or {})["notes"])


def test_a_term_of_positions_in_the_keys_gives_no_verdict_and_a_mistake_beside_none_is_one():
    with_terms = read(HEAD + POSITIONS_INSIDE, "mha")
    without = read(HEAD + POSITIONS_INSIDE.replace("k = k + torch.sin(angles)", "k = k + k"), "mha")

    assert isinstance(with_terms, Chosen)
    assert "positions inside" in with_terms.doubt
    assert isinstance(without, Chosen)
    assert not without.doubt
    assert without.mistakes > 0


def test_a_mask_of_padding_is_no_causal_mask_of_two_lengths():
    padding = (
        "def create_padding_mask(lengths, max_len):\n    return torch.arange(max_len)[None] >= lengths.unsqueeze(1)\n"
    )
    causal = "def create_mask(length, length_k):\n    return torch.ones(length, length_k).tril()\n"

    assert (inference.kata_of((HEAD + padding).encode()) or [""])[0] == "padding_mask"
    assert (inference.kata_of((HEAD + causal).encode()) or [""])[0] == "causal_mask"


def test_matrices_that_are_no_layers_and_have_no_bias_are_right_as_read(shared_engine):
    """Their gradients too: none reaches the biases that the contract has."""
    report = shared_engine.grade("mha", adapter.source("raw_parameters").encode(), attempt="mine.py", reads=True)

    assert report.passed, [one for one in report.findings if one.outcome == "failed"]


def test_code_that_takes_as_many_keys_as_queries_is_right_as_read(shared_engine):
    report = shared_engine.grade("qkv_attention", (HEAD + AS_MANY_KEYS).encode(), attempt="mine.py", reads=True)

    assert report.passed, [one for one in report.findings if one.outcome == "failed"]


@pytest.mark.parametrize(("package", "is_public"), [("einop", True), ("utils", False), ("models.parts", False)])
def test_a_missing_package_is_named_with_what_installs_it(package, is_public, shared_engine):
    """What has the name of somebody's own file is not looked for among the packages of others."""
    text = HEAD.replace("import math", f"from {package} import rearrange")
    text += A_WIDTH_BY_ITS_LAYERS.replace("(weights @ v)", "rearrange(weights @ v)")

    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.ungraded_because is not None
    assert ("pip install einop" in report.ungraded_because) == is_public
    assert "Put a file of yours beside this one" in report.ungraded_because


def test_a_dropout_that_minds_the_mode_and_has_a_rate_of_its_own_is_right_as_read(shared_engine):
    report = shared_engine.grade("mha", (HEAD + A_RATE_OF_ITS_OWN).encode(), attempt="mine.py", reads=True)

    assert report.passed, [one for one in report.findings if one.outcome == "failed"]
