"""The line finder on mistakes as people write them: `# HERE` marks the line to be shown; without it, none may be."""

from __future__ import annotations

import sys
import textwrap

import pytest

from attn_kata.diagnosis import catalogue, lines

HEAD = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import einsum\n"


def sdpa(body: str) -> str:
    """A scaled_dot_product_attention with this body."""
    return f"{HEAD}def scaled_dot_product_attention(q, k, v):\n{textwrap.indent(body, '    ')}\n"


def padded(body: str) -> str:
    """A padded_attention with this body."""
    return f"{HEAD}def padded_attention(q, k, v, keep):\n{textwrap.indent(body, '    ')}\n"


def mha(forward: str, init: str = "pass") -> str:
    """A MultiHeadAttention with this forward, and this at the end of __init__."""
    return (
        f"""{HEAD}
class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
"""
        + textwrap.indent(textwrap.dedent(init).strip(), " " * 8)
        + "\n    def forward(self, x, mask=None):\n"
        + textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
        + "\n"
    )


SPLIT = """
B, T, E = x.shape
q = self.q_proj(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
k = self.k_proj(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
v = self.v_proj(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
"""
KEYS_AGAIN = "self.k_proj(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)  # HERE"
MERGE = "return self.o_proj((w @ v).transpose(1, 2).contiguous().view(B, T, E))\n"

SCALE = [
    ("scale.embed_dim", mha(SPLIT + "w = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(E), dim=-1)  # HERE\n" + MERGE)),
    (
        "scale.embed_dim",
        mha(SPLIT + "w = F.softmax(q @ k.mT * self.scale, dim=-1)\n" + MERGE, "self.scale = embed_dim ** -0.5  # HERE"),
    ),
    ("scale.embed_dim", mha(SPLIT + "q = q / self.embed_dim ** 0.5  # HERE\nw = (q @ k.mT).softmax(-1)\n" + MERGE)),
    (
        "scale.embed_dim",
        mha(
            SPLIT + "s = torch.einsum('bhid,bhjd->bhij', q, k)\n"
            "s = s * x.size(-1) ** -0.5  # HERE\n"
            "w = s.softmax(-1)\n" + MERGE
        ),
    ),
    (
        "scale.embed_dim",
        mha(SPLIT + "s = (q @ k.mT).div(math.sqrt(self.embed_dim))  # HERE\nw = s.softmax(-1)\n" + MERGE),
    ),
    (
        "scale.embed_dim",
        mha(SPLIT + "scale = 1.0 / math.sqrt(E)  # HERE\nw = torch.softmax(q @ k.mT * scale, -1)\n" + MERGE),
    ),
    (
        "scale.embed_dim",
        mha(
            SPLIT + "s = q @ k.mT\ns /= torch.sqrt(torch.tensor(E, dtype=s.dtype))  # HERE\nw = s.softmax(-1)\n" + MERGE
        ),
    ),
    (
        "scale.embed_dim",
        mha(
            SPLIT + "w = F.softmax(q @ k.mT / self.temper, -1)\n" + MERGE,
            "self.register_buffer('temper', torch.tensor(embed_dim) ** 0.5)  # HERE",
        ),
    ),
    ("scale.value_dim", sdpa("s = q @ k.transpose(-2, -1) / math.sqrt(v.size(-1))  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "scale.value_dim",
        sdpa("d_k = v.shape[-1]  # HERE\ns = q @ k.transpose(-2, -1) / math.sqrt(d_k)\nreturn s.softmax(-1) @ v"),
    ),
    ("scale.value_dim", sdpa("scale = v.size(-1) ** -0.5  # HERE\nreturn F.softmax(q @ k.mT * scale, dim=-1) @ v")),
    ("scale.value_dim", sdpa("q = q * v.size(-1) ** -0.5  # HERE\nreturn F.softmax(q @ k.mT, dim=-1) @ v")),
    ("scale.key_length", sdpa("s = q @ k.mT / k.size(-2) ** 0.5  # HERE\nreturn s.softmax(-1) @ v")),
    ("scale.key_length", sdpa("s = q @ k.mT\ns = s / math.sqrt(s.size(-1))  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "scale.key_length",
        sdpa("kt = k.transpose(-2, -1)\nreturn (q @ kt / kt.size(-1) ** 0.5).softmax(-1) @ v  # HERE"),
    ),
    ("scale.heads", mha(SPLIT + "w = (q @ k.mT / math.sqrt(self.num_heads)).softmax(-1)  # HERE\n" + MERGE)),
    ("scale.no_sqrt", sdpa("s = q @ k.transpose(-2, -1) / q.size(-1)  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "scale.no_sqrt",
        sdpa("d_k = q.size(-1)\ns = torch.matmul(q, k.transpose(-2, -1)) / d_k  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "scale.no_sqrt",
        mha(SPLIT + "w = (q @ k.mT * self.scale).softmax(-1)\n" + MERGE, "self.scale = 1 / self.head_dim  # HERE"),
    ),
    ("scale.no_sqrt", mha(SPLIT + "w = (q @ k.mT / self.head_dim).softmax(-1)  # HERE\n" + MERGE)),
    ("scale.inverted", sdpa("return (q @ k.mT * math.sqrt(q.size(-1))).softmax(-1) @ v  # HERE")),
    ("scale.inverted", sdpa("scale = q.size(-1) ** -0.5\ns = q @ k.mT / scale  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "scale.inverted",
        mha(
            SPLIT + "s = q @ k.mT / self.scale  # HERE\nw = s.softmax(-1)\n" + MERGE,
            "self.scale = self.head_dim ** -0.5",
        ),
    ),
    (
        "scale.inverted",
        sdpa("s = torch.einsum('...id,...jd->...ij', q, k)\ns *= q.shape[-1] ** 0.5  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    ("scale.floor_division", sdpa("s = q @ k.mT // math.sqrt(q.size(-1))  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "scale.floor_division",
        sdpa("d = math.sqrt(q.size(-1))\ns = q @ k.mT\ns //= d  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "scale.floor_division",
        sdpa("s = torch.div(q @ k.mT, q.size(-1) ** 0.5, rounding_mode='floor')  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "scale.floor_division",
        sdpa("s = torch.floor_divide(q @ k.mT, math.sqrt(q.size(-1)))  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "scale.after_softmax",
        sdpa("w = F.softmax(q @ k.mT, dim=-1)\nw = w / math.sqrt(q.size(-1))  # HERE\nreturn w @ v"),
    ),
    ("scale.after_softmax", sdpa("return F.softmax(q @ k.mT, dim=-1) / math.sqrt(k.shape[-1]) @ v  # HERE")),
    # Decoys: the one scale is right, or there are two.
    ("scale.embed_dim", mha(SPLIT + "w = (q @ k.mT / math.sqrt(self.head_dim)).softmax(-1)\n" + MERGE)),
    ("scale.value_dim", sdpa("return (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1) @ v")),
    ("scale.embed_dim", mha(SPLIT + "w = (q / math.sqrt(E)) @ k.mT\nw = (w / math.sqrt(T)).softmax(-1)\n" + MERGE)),
    ("scale.no_sqrt", sdpa("s = q * q.size(-1) ** -0.5\ns = s @ k.mT * q.size(-1) ** -0.5\nreturn s.softmax(-1) @ v")),
    ("scale.missing", sdpa("s = q @ k.mT  # HERE\nreturn s.softmax(-1) @ v")),
    ("scale.missing", sdpa("kT = k.transpose(-2, -1)\ns = torch.matmul(q, kT)  # HERE\nreturn s.softmax(-1) @ v")),
    ("scale.missing", sdpa('s = torch.einsum("...qd,...kd->...qk", q, k)  # HERE\nreturn s.softmax(-1) @ v')),
    ("scale.missing", mha("q, k = x @ self.a.T, x @ self.b.T\ns = q @ k.mT  # HERE\nreturn s.softmax(-1) @ x")),
    ("additive.no_tanh", mha("both = self.a(q)[:, None] + self.b(k)  # HERE\nreturn self.v(both).softmax(1) @ k")),
    ("additive.no_tanh", mha("n = 1 + T\nboth = self.a(q) + self.b(k)  # HERE\nreturn self.v(both).softmax(1) @ k")),
    ("additive.no_tanh", mha("both = self.a(q) + self.b(k) + self.c\nreturn self.v(both).softmax(1) @ k")),
    ("scale.missing", sdpa("s = (a @ b.mT) + (c @ d.mT)\nreturn s.softmax(-1) @ v")),
    ("scale.embed_dim", mha(SPLIT + "w = (q @ k.mT).softmax(-1)\n" + MERGE)),
    # Code that is not run is not looked at.
    (
        "scale.embed_dim",
        mha(SPLIT + "w = (q @ k.mT / math.sqrt(E)).softmax(-1)  # HERE\n" + MERGE) + "def old(q, k, d):\n"
        "    return (q @ k.mT / math.sqrt(d)).softmax(-1)\n" + "if __name__ == '__main__':\n"
        "    s = torch.randn(2, 3) / math.sqrt(3)\n",
    ),
    (
        "scale.no_sqrt",
        HEAD + "def attend(q, k, scale):\n"
        "    return (q @ k.mT * scale).softmax(-1)\n"
        "def scaled_dot_product_attention(q, k, v):\n"
        "    return attend(q, k, 1 / q.size(-1)) @ v  # HERE\n"
        "    return v / math.sqrt(2)\n",
    ),
    (
        "scale.value_dim",
        HEAD + "class Attention:\n"
        "    def __init__(self):\n"
        "        self.d = 4\n"
        "    def __call__(self, q, k, v):\n"
        "        return (q @ k.mT / math.sqrt(v.size(-1))).softmax(-1) @ v  # HERE\n"
        "def scaled_dot_product_attention(q, k, v):\n"
        "    return Attention()(q, k, v)\n",
    ),
]

SOFTMAX = [
    (
        "softmax.query_axis",
        sdpa("s = q @ k.mT / math.sqrt(q.size(-1))\nw = torch.softmax(s, dim=-2)  # HERE\nreturn w @ v"),
    ),
    ("softmax.query_axis", sdpa("s = q @ k.mT\nreturn s.softmax(2) @ v  # HERE")),
    (
        "softmax.query_axis",
        mha(SPLIT + "w = self.softmax(q @ k.mT)\n" + MERGE, "self.softmax = nn.Softmax(dim=-2)  # HERE"),
    ),
    ("softmax.query_axis", sdpa("e = (q @ k.mT).exp()\nw = e / e.sum(dim=-2, keepdim=True)  # HERE\nreturn w @ v")),
    (
        "softmax.query_axis",
        sdpa("e = torch.exp(q @ k.mT)\ntotal = e.sum(-2, keepdim=True)  # HERE\nreturn e / total @ v"),
    ),
    ("softmax.head_axis", sdpa("w = F.softmax(q @ k.mT)  # HERE\nreturn w @ v")),
    ("softmax.head_axis", sdpa("w = nn.Softmax(dim=1)(q @ k.mT)  # HERE\nreturn w @ v")),
    ("softmax.head_axis", sdpa("w = nn.functional.softmax(q @ k.mT, 1)  # HERE\nreturn w @ v")),
    ("softmax.head_axis", mha(SPLIT + "w = self.softmax(q @ k.mT)\n" + MERGE, "self.softmax = nn.Softmax()  # HERE")),
    ("softmax.sigmoid", sdpa("return torch.sigmoid(q @ k.mT) @ v  # HERE")),
    ("softmax.sigmoid", sdpa("w = (q @ k.mT).sigmoid()  # HERE\nreturn w @ v")),
    ("softmax.sigmoid", sdpa("w = F.sigmoid(q @ k.mT)  # HERE\nreturn w @ v")),
    ("softmax.sigmoid", sdpa("w = nn.Sigmoid()(q @ k.mT)  # HERE\nreturn w @ v")),
    ("softmax.flattened", sdpa("s = q @ k.mT\nw = s.flatten(-2).softmax(-1).view_as(s)  # HERE\nreturn w @ v")),
    ("softmax.flattened", sdpa("e = torch.exp(q @ k.mT)\nreturn e / e.sum() @ v  # HERE")),
    ("softmax.flattened", sdpa("e = torch.exp(q @ k.mT)\nreturn e / e.sum((-2, -1), keepdim=True) @ v  # HERE")),
    ("softmax.twice", sdpa("w = F.softmax(q @ k.mT, dim=-1)\nw = F.softmax(w, dim=-1)  # HERE\nreturn w @ v")),
    ("softmax.twice", sdpa("return F.softmax(F.softmax(q @ k.mT, dim=-1), dim=-1) @ v  # HERE")),
    # Decoys.
    ("softmax.query_axis", sdpa("s = k @ q.mT\nreturn s.softmax(-1).mT @ v")),
    ("softmax.query_axis", sdpa("w = F.softmax(q @ k.mT, dim=-2)\nu = F.softmax(k @ q.mT, dim=-2)\nreturn w @ v")),
    ("softmax.query_axis", sdpa("a = F.softmax(q, dim=-1)\nw = F.softmax(a @ k.mT, dim=-2)  # HERE\nreturn w @ v")),
    ("softmax.missing", sdpa("return q @ k.mT @ v")),
    ("softmax.sigmoid", mha(SPLIT + "g = torch.sigmoid(x)\nw = (q @ k.mT).sigmoid()\n" + MERGE)),
]

MASK = [
    (
        "mask.lost",
        padded("s = q @ k.mT\ns.masked_fill(~keep[:, None, None, :], float('-inf'))  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",
        padded("s = q @ k.mT + (1 - keep.float())[:, None, None] * float('-inf')  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",
        padded("bias = ~keep * -torch.inf  # HERE\nreturn (q @ k.mT + bias[:, None, None]).softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",
        padded("low = -math.inf\nbias = low * keep.logical_not()  # HERE\nreturn (q @ k.mT + bias).softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",
        padded("bias = (~keep).float().mul(float('-inf'))  # HERE\nreturn (q @ k.mT + bias).softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",
        padded("m = torch.triu(torch.ones(3, 3), 1) * float('-inf')  # HERE\nreturn (q @ k.mT + m).softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",  # nothing is multiplied by 0: what lies below is cut out afterwards
        padded("m = torch.triu(torch.ones(3, 3) * float('-inf'), 1)\nreturn (q @ k.mT + m).softmax(-1) @ v"),
    ),
    (
        "mask.zero_times_inf",
        padded("s = (q @ k.mT).masked_fill(~keep[:, None, None], -math.inf)\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.lost",
        padded(
            "attn = q @ k.mT\n"
            "att = attn.masked_fill(~keep[:, None, None, :], -1e9)  # HERE\n"
            "return attn.softmax(-1) @ v"
        ),
    ),
    (
        "mask.lost",
        padded("s = q @ k.mT\ntorch.where(keep[:, None, None], s, float('-inf'))  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.lost",
        padded(
            "s = q @ k.mT\n"
            "if keep is not None:\n"
            "    s.masked_fill(keep[:, None, None, :] == 0, -1e9)  # HERE\n"
            "return s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.lost",
        padded(
            "s = q @ k.mT\n"
            "s = s.masked_fill(~keep[:, None, None, :], -1e9)  # HERE\n"
            "s = q @ k.mT / math.sqrt(q.size(-1))\n"
            "return s.softmax(-1) @ v"
        ),
    ),
    ("mask.lost", padded("m = keep[:, None, None, :]  # HERE\ns = q @ k.mT\nreturn s.softmax(-1) @ v")),
    ("mask.lost", padded("s = q @ k.mT\nreturn s.softmax(-1) @ v")),
    (
        "mask.lost",
        padded(
            "s = q @ k.mT\n"
            "if keep.all():\n"
            "    s = s.masked_fill(~keep[:, None, None], 0)\n"
            "else:\n"
            "    s = s * 2\n"
            "return s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.inverted",
        padded(
            "s = q @ k.mT\ns = s.masked_fill(keep[:, None, None, :], float('-inf'))  # HERE\nreturn s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.inverted",
        padded(
            "m = keep[:, None, None, :]\ns = torch.where(m, float('-inf'), q @ k.mT)  # HERE\nreturn s.softmax(-1) @ v"
        ),
    ),
    ("mask.inverted", padded("s = q @ k.mT + keep[:, None, None, :] * -1e9  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "mask.inverted",
        padded(
            "s = q @ k.mT\ns[keep[:, None, None, :].expand_as(s)] = float('-inf')  # HERE\nreturn s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.inverted",
        mha(
            SPLIT + "s = q @ k.mT\n"
            "if mask is not None:\n"
            "    s = s.masked_fill(mask == 1, float('-inf'))  # HERE\n"
            "w = s.softmax(-1)\n" + MERGE
        ),
    ),
    (
        "mask.inverted",
        HEAD + "def padding_mask(lengths, max_len):\n    return torch.arange(max_len) >= lengths[:, None]  # HERE\n",
    ),
    (
        "mask.inverted",
        HEAD + "def padding_mask(lengths, max_len):\n"
        "    return lengths[:, None] <= torch.arange(max_len)  # HERE\n"
        "def padded_attention(q, k, v, keep):\n"
        "    return (q @ k.mT).masked_fill(~keep[:, None, None], -1e9).softmax(-1) @ v\n",
    ),
    (
        "mask.inverted",
        padded("s = q @ k.mT\ns = s.masked_fill(~keep[:, None, None, :], float('-inf'))\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.zero_fill",
        padded("s = q @ k.mT\ns = s.masked_fill(~keep[:, None, None, :], 0)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    ("mask.zero_fill", padded("s = q @ k.mT * keep[:, None, None, :]  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "mask.zero_fill",
        padded("m = keep.unsqueeze(1).unsqueeze(2).float()\ns = q @ k.mT\ns = s * m  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.zero_fill",
        padded("s = q @ k.mT\ns = torch.where(keep[:, None, None, :], s, 1e-9)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.zero_fill",
        padded("s = q @ k.mT\ns.masked_fill_(~keep[:, None, None, :], -1e-9)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    ("mask.zero_fill", padded("s = (q @ k.mT).masked_fill(~keep[:, None, None, :], -1e9)\nreturn s.softmax(-1) @ v")),
    (
        "mask.fixed_size",
        padded(
            "m = torch.ones(128, 128).tril()  # HERE\ns = q @ k.mT\ns[..., m[:4, :4] == 0] = -1e9\nreturn s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.fixed_size",
        padded(
            "m = torch.ones(q.size(2), k.size(2)).tril()\ns = (q @ k.mT).masked_fill(m == 0, -1e9)\nreturn s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.weak_fill",
        padded("s = q @ k.mT\ns = s + (1 - keep[:, None, None].float()) * -10  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    ("mask.weak_fill", padded("s = (q @ k.mT).masked_fill(~keep[:, None, None], -1e9)\nreturn s.softmax(-1) @ v")),
    (
        "mask.fill_sign",
        padded("s = q @ k.mT\ns = s.masked_fill(~keep[:, None, None], 1e9)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (  # taken away, a positive number hides
        "mask.fill_sign",
        padded("s = q @ k.mT\ns = s - (1 - keep[:, None, None].float()) * 1e9\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.raised",
        padded("s = q @ k.mT\ns = s + keep[:, None, None].float() * 1e9  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    ("mask.raised", padded("s = q @ k.mT\ns = s - keep[:, None, None].float() * 1e9\nreturn s.softmax(-1) @ v")),
    (
        "mask.integer_not",
        padded("m = ~keep[:, None, None].to(torch.uint8)  # HERE\nreturn (q @ k.mT + m * -1e9).softmax(-1) @ v"),
    ),
    ("mask.integer_not", padded("m = ~keep[:, None, None].bool()\nreturn (q @ k.mT + m * -1e9).softmax(-1) @ v")),
    (
        "numerics.small_fill",
        padded("s = (q @ k.mT).masked_fill(~keep[:, None, None], -1e4)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    ("numerics.small_fill", padded("s = (q @ k.mT).masked_fill(~keep[:, None, None], -1e9)\nreturn s.softmax(-1) @ v")),
    ("mask.after_softmax", padded("w = (q @ k.mT).softmax(-1)\nw = w * keep[:, None, None, :]  # HERE\nreturn w @ v")),
    (
        "mask.after_softmax",
        padded(
            "w = F.softmax(q @ k.mT, dim=-1)\nw = w.masked_fill(~keep[:, None, None, :], 0.0)  # HERE\nreturn w @ v"
        ),
    ),
    ("mask.after_softmax", padded("return (F.softmax(q @ k.mT, dim=-1) * keep[:, None, None, :]) @ v  # HERE")),
    (
        "mask.after_softmax",
        padded("w = F.softmax(q @ k.mT, dim=-1)\nw *= keep[:, None, None, :].to(w.dtype)  # HERE\nreturn w @ v"),
    ),
    (
        "mask.query_axis",
        padded("s = (q @ k.mT).masked_fill(~keep[:, None, :, None], -1e9)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    # What is made and never used is lost, not laid on the queries.
    (
        "mask.query_axis",
        padded("s = q @ k.mT\nm = s.masked_fill(~keep[:, None, None, :], -1e9)\nreturn s.softmax(-1) @ v"),
    ),
    (
        "mask.query_axis",
        padded(
            "m = keep.unsqueeze(1).unsqueeze(3)  # HERE\ns = (q @ k.mT).masked_fill(~m, -1e9)\nreturn s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.query_axis",
        padded(
            "keep = keep[:, None, :, None]  # HERE\ns = torch.where(keep, q @ k.mT, -1e9)\nreturn s.softmax(-1) @ v"
        ),
    ),
    (
        "mask.query_axis",
        padded(
            "s = (q @ k.mT).masked_fill(~keep.view(-1, 1, keep.size(1), 1), -1e9)  # HERE\nreturn s.softmax(-1) @ v"
        ),
    ),
    ("mask.added", padded("s = q @ k.mT + keep[:, None, None, :]  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "mask.added",
        mha(SPLIT + "s = q @ k.mT\nif mask is not None:\n    s += mask  # HERE\nw = s.softmax(-1)\n" + MERGE),
    ),
    (
        "mask.shifted",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    m = torch.ones(num_queries, num_keys, dtype=torch.bool)\n"
        "    return m.tril(diagonal=num_keys - num_queries - 1)  # HERE\n",
    ),
    (
        "mask.shifted",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    return torch.triu(torch.ones(num_queries, num_keys), num_keys - num_queries) == 0  # HERE\n",
    ),
    (
        "mask.shifted",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    i = torch.arange(num_queries)\n"
        "    j = torch.arange(num_keys)\n"
        "    return j[None, :] < i[:, None] + num_keys - num_queries  # HERE\n",
    ),
    (
        "mask.shifted",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    m = torch.zeros(num_queries, num_keys, dtype=torch.bool)\n"
        "    for i in range(num_queries):\n"
        "        for j in range(num_keys):\n"
        "            m[i, j] = j < i + num_keys - num_queries  # HERE\n"
        "    return m\n",
    ),
    (
        "mask.top_left",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    return torch.tril(torch.ones(num_queries, num_keys, dtype=torch.bool))  # HERE\n",
    ),
    (
        "mask.top_left",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    return ~torch.triu(torch.ones(num_queries, num_keys, dtype=torch.bool), diagonal=1)  # HERE\n",
    ),
    (
        "mask.top_left",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    return torch.arange(num_keys)[None, :] <= torch.arange(num_queries)[:, None]  # HERE\n",
    ),
    (
        "mask.top_left",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    return torch.ones(num_queries, num_keys).tril(num_keys - num_queries).bool()\n"
        "def causal_attention(q, k, v):\n"
        "    m = torch.ones(q.size(-2), k.size(-2)).tril().bool()  # HERE\n"
        "    return (q @ k.mT).masked_fill(~m, -1e9).softmax(-1) @ v\n",
    ),
    (
        "mask.top_left",
        HEAD + "def causal_mask(num_queries, num_keys, device=None):\n"
        "    return torch.ones(num_queries, num_keys).tril(num_keys - num_queries).bool()\n",
    ),
    ("mask.either", HEAD + "def combine_masks(keep, causal):\n    return keep[:, None, None, :] | causal  # HERE\n"),
    (
        "mask.either",
        HEAD + "def combine_masks(keep, causal):\n"
        "    return torch.logical_or(keep[:, None, None, :], causal)  # HERE\n",
    ),
    (
        "mask.padding_off_by_one",
        HEAD + "def padding_mask(lengths, max_len):\n"
        "    return torch.arange(max_len)[None] <= lengths[:, None]  # HERE\n",
    ),
    # Decoy: two uses, and nothing says which one is wrong.
    (
        "mask.inverted",
        padded(
            "s = (q @ k.mT).masked_fill(keep[:, None, None], -1e9)\n"
            "w = s.softmax(-1).masked_fill(keep[:, None, None], 0)\n"
            "return w @ v"
        ),
    ),
    (
        "mask.after_softmax",
        padded(
            "s = (q @ k.mT).masked_fill(~keep[:, None, None], -1e9)\n"
            "w = s.softmax(-1) * keep[:, None, None]\n"
            "return w @ v"
        ),
    ),
]

HEADS = [
    (
        "split.no_transpose",
        mha(
            "B, T, E = x.shape\n"
            "q = self.q_proj(x).view(B, self.num_heads, T, self.head_dim)  # HERE\n"
            "k = self.k_proj(x).view(B, self.num_heads, T, self.head_dim)\n"
            "v = self.v_proj(x).view(B, self.num_heads, T, self.head_dim)\n"
            "w = (q @ k.mT).softmax(-1)\n" + MERGE
        ),
    ),
    (
        "split.no_transpose",
        HEAD + "def split_heads(x, num_heads):\n"
        "    B, T, E = x.shape\n"
        "    return x.reshape(B, num_heads, T, E // num_heads)  # HERE\n",
    ),
    (
        "split.no_transpose",
        HEAD + "def split_heads(x, num_heads):\n"
        "    B, T, E = x.shape\n"
        "    return x.reshape((B, num_heads, T, -1))  # HERE\n",
    ),
    (
        "split.no_transpose",
        mha(
            "B, T, E = x.shape\n"
            "h = self.num_heads\n"
            "q, k, v = (\n"
            "    p(x).view(B * h, T, E // h)  # HERE\n"
            "    for p in (self.q_proj, self.k_proj, self.v_proj)\n"
            ")\n"
            "w = (q @ k.mT).softmax(-1)\n" + MERGE
        ),
    ),
    ("split.no_transpose", mha(SPLIT + "w = (q @ k.mT).softmax(-1)\n" + MERGE)),
    (
        "split.interleaved",
        HEAD + "def split_heads(x, num_heads):\n"
        "    B, T, E = x.shape\n"
        "    return x.view(B, T, E // num_heads, num_heads).permute(0, 3, 1, 2)  # HERE\n",
    ),
    (
        "split.interleaved",
        HEAD + "from einops import rearrange\n"
        "def split_heads(x, num_heads):\n"
        "    return rearrange(x, 'b t (d h) -> b h t d', h=num_heads)  # HERE\n",
    ),
    (
        "split.interleaved",
        HEAD + "from einops import rearrange\n"
        "def split_heads(x, num_heads):\n"
        "    return rearrange(x, 'b t (h d) -> b h t d', h=num_heads)\n",
    ),
    (
        "merge.no_transpose",
        mha(SPLIT + "w = (q @ k.mT).softmax(-1)\nout = (w @ v).reshape(B, T, E)  # HERE\nreturn self.o_proj(out)"),
    ),
    (
        "merge.no_transpose",
        mha(
            SPLIT + "w = (q @ k.mT).softmax(-1)\n"
            "out = w @ v\n"
            "out = out.contiguous().view(B, T, -1)  # HERE\n"
            "return self.o_proj(out)"
        ),
    ),
    (
        "merge.no_transpose",
        mha(SPLIT + "w = (q @ k.mT).softmax(-1)\nreturn self.o_proj(torch.matmul(w, v).view(B, -1, E))  # HERE"),
    ),
    (
        "merge.no_transpose",
        HEAD + "def merge_heads(x):\n    B, H, T, D = x.shape\n    return x.reshape(B, T, H * D)  # HERE\n",
    ),
    (
        "merge.no_transpose",
        HEAD + "def merge_heads(x):\n"
        "    B, H, T, D = x.shape\n"
        "    x = x.transpose(1, 2)\n"
        "    return x.reshape(B, T, H * D)\n",
    ),
    (
        "merge.no_transpose",
        mha(
            SPLIT + "w = (q @ k.mT).softmax(-1)\n"
            "out = (w @ v).permute(0, 2, 1, 3)\n"
            "return self.o_proj(out.reshape(B, T, E))"
        ),
    ),
    ("merge.interleaved", HEAD + "def merge_heads(x):\n    return x.permute(0, 2, 3, 1).flatten(2)  # HERE\n"),
    (
        "project.key_for_value",
        mha(
            SPLIT.replace("self.v_proj(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)", KEYS_AGAIN)
            + "w = (q @ k.mT).softmax(-1)\n"
            + MERGE
        ),
    ),
    (
        "project.key_for_value",
        mha(
            "queries = self.q_proj(x)\n"
            "keys = self.k_proj(x)\n"
            "values = self.k_proj(x)  # HERE\n"
            "return self.o_proj((queries @ keys.mT).softmax(-1) @ values)"
        ),
    ),
    (
        "project.key_for_value",
        mha(
            "q, k, v = self.q_proj(x), self.k_proj(x), self.k_proj(x)  # HERE\n"
            "return self.o_proj((q @ k.mT).softmax(-1) @ v)"
        ),
    ),
    (
        "project.key_for_value",
        mha(
            "queries = x @ self.W_query\n"
            "keys = torch.matmul(x, self.W_key)\n"
            "values = x @ self.W_key  # HERE\n"
            "return self.o_proj((queries @ keys.mT).softmax(-1) @ values)"
        ),
    ),
    (
        "project.key_for_value",
        mha(
            "Q = self.q_proj(x)\n"
            "K = self.k_proj(x)\n"
            "V = self.split(self.k_proj(x))  # HERE\n"
            "return self.o_proj((Q @ K.mT).softmax(-1) @ V)"
        ),
    ),
    (
        "project.query_for_key",
        mha(
            "q = self.q_proj(x)\n"
            "k = self.q_proj(x)  # HERE\n"
            "v = self.v_proj(x)\n"
            "return self.o_proj((q @ k.mT).softmax(-1) @ v)"
        ),
    ),
    (
        "project.chained",
        mha(
            "x = self.q_proj(x)\n"
            "k = self.k_proj(x)  # HERE\n"
            "v = self.v_proj(x)\n"
            "return self.o_proj((x @ k.mT).softmax(-1) @ v)"
        ),
    ),
    (
        "project.chained",
        mha(
            "q = self.q_proj(x)\n"
            "k, v = self.k_proj(q), self.v_proj(q)  # HERE\n"
            "return self.o_proj((q @ k.mT).softmax(-1) @ v)"
        ),
    ),
    ("project.swapped", sdpa("s = k @ q.transpose(-2, -1) / math.sqrt(q.size(-1))  # HERE\nreturn s.softmax(-1) @ v")),
    ("project.swapped", sdpa("s = torch.matmul(k, q.transpose(-2, -1))  # HERE\nreturn s.softmax(-1) @ v")),
    (
        "project.swapped",
        mha(
            "q = self.k_proj(x)  # HERE\n"
            "k = self.q_proj(x)\n"
            "v = self.v_proj(x)\n"
            "return self.o_proj((q @ k.mT).softmax(-1) @ v)"
        ),
    ),
    (
        "project.chunk_order",
        mha("k, q, v = self.qkv_proj(x).chunk(3, dim=-1)  # HERE\nreturn (q @ k.mT).softmax(-1) @ v"),
    ),
    (
        "project.chunk_order",
        mha(
            "qkv = self.qkv_proj(x)\n"
            "q, v, k = torch.split(qkv, self.embed_dim, dim=-1)  # HERE\n"
            "return (q @ k.mT).softmax(-1) @ v"
        ),
    ),
    (
        "project.chunk_order",
        mha(
            "qkv = self.qkv_proj(x).view(2, 3, 3, 4)\n"
            "q, k, v = qkv[:, :, 1], qkv[:, :, 0], qkv[:, :, 2]\n"
            "return (q @ k.mT).softmax(-1) @ v"
        ),
    ),
    (
        "project.chunk_order",
        mha("p = self.qkv_proj(x).chunk(3, -1)\nq, k, v = p[1], p[0], p[2]  # HERE\nreturn (q @ k.mT).softmax(-1) @ v"),
    ),
    ("project.chunk_order", mha("q, k, v = self.qkv_proj(x).chunk(3, dim=-1)\nreturn (q @ k.mT).softmax(-1) @ v")),
    (
        "project.interleaved",
        mha(
            "B, T, E = x.shape\n"
            "qkv = self.qkv_proj(x).view(B, T, E, 3)  # HERE\n"
            "q, k, v = qkv.unbind(-1)\n"
            "return (q @ k.mT).softmax(-1) @ v"
        ),
    ),
    (
        "output.missing",
        mha(SPLIT + "w = (q @ k.mT).softmax(-1)\nreturn (w @ v).transpose(1, 2).reshape(B, T, E)  # HERE"),
    ),
    (
        "output.missing",
        mha(
            SPLIT + "w = (q @ k.mT).softmax(-1)\n"
            "out = (w @ v).transpose(1, 2).reshape(B, T, E)\n"
            "self.o_proj(out)  # HERE\n"
            "return out"
        ),
    ),
    (
        "output.missing",
        mha(
            SPLIT + "w = (q @ k.mT).softmax(-1)\n"
            "out = (w @ v).transpose(1, 2).reshape(B, T, E)\n"
            "projected = self.o_proj(out)  # HERE\n"
            "return out"
        ),
    ),
    ("output.missing", mha(SPLIT + "w = (q @ k.mT).softmax(-1)\n" + MERGE)),
    ("output.missing", mha("if mask is None:\n    return x\nreturn x * 2")),
    ("mix.keys", sdpa("w = (q @ k.mT).softmax(-1)\nreturn w @ k  # HERE")),
    ("mix.keys", sdpa("w = (q @ k.mT).softmax(-1)\nreturn torch.matmul(w, k)  # HERE")),
    (
        "context.swapped",
        HEAD + "class CrossAttention(nn.Module):\n"
        "    def forward(self, x, context, keep=None):\n"
        "        q = self.q_proj(context)  # HERE\n"
        "        k = self.k_proj(x)\n"
        "        v = self.v_proj(x)\n"
        "        return (q @ k.mT).softmax(-1) @ v\n",
    ),
    (
        "context.ignored",
        HEAD + "class CrossAttention(nn.Module):\n"
        "    def forward(self, x, context, keep=None):\n"
        "        q = self.q_proj(x)\n"
        "        k = self.k_proj(x)  # HERE\n"
        "        v = self.v_proj(x)\n"
        "        return (q @ k.mT).softmax(-1) @ v\n",
    ),
]

REST = [
    (
        "dropout.before_softmax",
        mha(
            SPLIT + "s = self.dropout(q @ k.mT)  # HERE\nw = s.softmax(-1)\n" + MERGE,
            "self.dropout = nn.Dropout(dropout)",
        ),
    ),
    (
        "dropout.before_softmax",
        mha(SPLIT + "s = F.dropout(q @ k.mT, self.p, self.training)  # HERE\nw = s.softmax(-1)\n" + MERGE),
    ),
    (
        "dropout.before_softmax",  # the draw of a demo at the end is no dropout
        mha(SPLIT + "s = self.drop(q @ k.mT)  # HERE\nw = s.softmax(-1)\n" + MERGE)
        + "print(torch.rand(2, 5, 12).shape)\n",
    ),
    (
        "dropout.before_softmax",
        mha(SPLIT + "noise = nn.Dropout(0.1)\ns = noise(q @ k.mT)  # HERE\nw = s.softmax(-1)\n" + MERGE),
    ),
    ("dropout.on_values", mha(SPLIT + "v = self.drop(v)  # HERE\nw = (q @ k.mT).softmax(-1)\n" + MERGE)),
    (
        "dropout.rows",
        mha(SPLIT + "w = (q @ k.mT).softmax(-1)\nw *= F.dropout(w.new_ones(B, 3, T, 1))  # HERE\n" + MERGE),
    ),
    (
        "dropout.drawn_once",
        mha(SPLIT + "torch.manual_seed(0)  # HERE\nw = F.dropout((q @ k.mT).softmax(-1))\n" + MERGE),
    ),
    (
        "dropout.drawn_once",
        mha(SPLIT + "w = self.kept * (q @ k.mT).softmax(-1)\n" + MERGE, "self.kept = torch.rand(9) > 0.1  # HERE"),
    ),
    ("dropout.always", mha(SPLIT + "w = F.dropout((q @ k.mT).softmax(-1), self.p)  # HERE\n" + MERGE)),
    ("dropout.always", mha(SPLIT + "w = F.dropout((q @ k.mT).softmax(-1), p=0.1, training=True)  # HERE\n" + MERGE)),
    ("dropout.always", mha(SPLIT + "w = nn.Dropout(0.1)((q @ k.mT).softmax(-1))  # HERE\n" + MERGE)),
    ("dropout.always", mha(SPLIT + "w = F.dropout((q @ k.mT).softmax(-1), 0.1, training=self.training)\n" + MERGE)),
    (
        "dropout.never",
        mha(SPLIT + "w = (q @ k.mT).softmax(-1)\n" + MERGE, "self.dropout = nn.Dropout(dropout)  # HERE"),
    ),
    (
        "dropout.never",
        mha(
            SPLIT + "w = (q @ k.mT).softmax(-1)\nself.dropout(w)  # HERE\n" + MERGE,
            "self.dropout = nn.Dropout(dropout)",
        ),
    ),
    (
        "dropout.renormalised",
        mha(
            SPLIT + "w = self.dropout((q @ k.mT).softmax(-1))\nw = w / w.sum(-1, keepdim=True)  # HERE\n" + MERGE,
            "self.dropout = nn.Dropout(dropout)",
        ),
    ),
    ("layout.T_of_batch", sdpa("return (q @ k.T).softmax(-1) @ v  # HERE")),
    ("layout.squeeze", sdpa("return ((q @ k.mT).softmax(-1) @ v).squeeze()  # HERE")),
    ("layout.batch_as_time", mha("x = x.transpose(0, 1)  # HERE\nreturn self.o_proj(x).transpose(0, 1)")),
    ("layout.view_of_strided", mha(SPLIT + "w = (q @ k.mT).softmax(-1)\n" + MERGE)),
    ("numerics.no_max", sdpa("e = torch.exp(q @ k.mT)  # HERE\nreturn e / e.sum(-1, keepdim=True) @ v")),
    ("numerics.no_max", sdpa("e = (q @ k.mT).exp()  # HERE\nreturn e / e.sum(-1, keepdim=True) @ v")),
    (
        "numerics.global_max",
        HEAD + "def softmax(x, dim):\n"
        "    x = x - x.max()  # HERE\n"
        "    e = x.exp()\n"
        "    return e / e.sum(dim, keepdim=True)\n",
    ),
    (
        "numerics.global_max",
        HEAD + "def softmax(x, dim):\n"
        "    e = torch.exp(x - torch.max(x))  # HERE\n"
        "    return e / e.sum(dim, keepdim=True)\n",
    ),
    (
        "softmax.dim_ignored",
        HEAD + "def softmax(x, dim):\n"
        "    e = torch.exp(x - x.amax(dim, keepdim=True))\n"
        "    return e / e.sum(-1, keepdim=True)  # HERE\n",
    ),
    (
        "softmax.keepdim",
        HEAD + "def softmax(x, dim):\n"
        "    e = torch.exp(x - x.amax(dim, keepdim=True))\n"
        "    return e / e.sum(dim)  # HERE\n",
    ),
    ("numerics.forced_float32", sdpa("s = (q @ k.mT).float()  # HERE\nreturn s.softmax(-1) @ v")),
    ("numerics.forced_float32", sdpa("w = F.softmax(q @ k.mT, dim=-1, dtype=torch.float32)  # HERE\nreturn w @ v")),
    ("numerics.forced_float32", sdpa("q = q.to(torch.float32)  # HERE\nreturn (q @ k.mT).softmax(-1) @ v")),
    (
        "numerics.forced_float32",
        padded(
            "s = (q @ k.mT).float() * 1  # HERE\nreturn (s + (1 - keep[:, None, None].float()) * -1e9).softmax(-1) @ v"
        ),
    ),
    ("numerics.default_dtype", sdpa("eye = torch.eye(q.size(-1))  # HERE\nreturn (q @ eye @ k.mT).softmax(-1) @ v")),
    (
        "numerics.large_fill",
        padded("s = (q @ k.mT).masked_fill(~keep[:, None, None], -1e9)  # HERE\nreturn s.softmax(-1) @ v"),
    ),
    (
        "device.default",
        HEAD + "def padding_mask(lengths, max_len):\n"
        "    return torch.arange(max_len)[None] < lengths[:, None]  # HERE\n",
    ),
    (
        "device.default",
        HEAD + "def padding_mask(lengths, max_len):\n"
        "    zeros = torch.zeros(max_len, device=lengths.device)\n"
        "    return torch.arange(max_len, device=torch.device('cpu'))[None] < lengths[:, None] + zeros  # HERE\n",
    ),
    ("inputs.modified", sdpa("q *= q.size(-1) ** -0.5  # HERE\nreturn (q @ k.mT).softmax(-1) @ v")),
    ("inputs.modified", sdpa("q.div_(math.sqrt(q.size(-1)))  # HERE\nreturn (q @ k.mT).softmax(-1) @ v")),
    (
        "inputs.modified",
        padded("k = k.transpose(-2, -1)\nk /= math.sqrt(q.size(-1))  # HERE\nreturn (q @ k).softmax(-1) @ v"),
    ),
    (
        "inputs.modified",
        padded("v[~keep[:, None, :].expand(v.shape[:3])] = 0  # HERE\nreturn (q @ k.mT).softmax(-1) @ v"),
    ),
    (
        "inputs.modified",
        padded("s = q @ k.mT\ns /= 2\ns.masked_fill_(~keep[:, None, None], -1e9)\nreturn s.softmax(-1) @ v"),
    ),
    ("gradient.detached", sdpa("w = (q @ k.mT).softmax(-1).detach()  # HERE\nreturn w @ v")),
    ("gradient.detached", sdpa("s = (q @ k.mT).data  # HERE\nreturn s.softmax(-1) @ v")),
    ("gradient.detached", sdpa("with torch.no_grad():  # HERE\n    w = (q @ k.mT).softmax(-1)\nreturn w @ v")),
    (
        "gradient.detached",
        sdpa(
            "s = q @ k.mT\n"
            "s = s - s.max(-1, keepdim=True).values.detach()\n"
            "w = torch.from_numpy(s.numpy())  # HERE\n"
            "return w @ v"
        ),
    ),
    (
        "module.rebuilt",
        mha(
            "q = nn.Linear(self.embed_dim, self.embed_dim)(x)  # HERE\n"
            "k = nn.Linear(self.embed_dim, self.embed_dim)(x)\n"
            "return q @ k.mT @ x"
        ),
    ),
    (
        "module.unregistered",
        HEAD + "class MultiHeadAttentionWrapper(nn.Module):\n"
        "    def __init__(self, d, n):\n"
        "        super().__init__()\n"
        "        self.heads = [nn.Linear(d, d) for _ in range(n)]  # HERE\n"
        "    def forward(self, x):\n"
        "        return torch.cat([h(x) for h in self.heads], -1)\n",
    ),
    (
        "module.unregistered",
        HEAD + "class MultiHeadAttentionWrapper(nn.Module):\n"
        "    def __init__(self, d, n):\n"
        "        super().__init__()\n"
        "        self.heads = []  # HERE\n"
        "        for _ in range(n):\n"
        "            self.heads.append(nn.Linear(d, d))\n"
        "    def forward(self, x):\n"
        "        return torch.cat([h(x) for h in self.heads], -1)\n",
    ),
    (
        "module.repeated",
        HEAD + "class MultiHeadAttentionWrapper(nn.Module):\n"
        "    def __init__(self, d, n):\n"
        "        super().__init__()\n"
        "        self.heads = nn.ModuleList([nn.Linear(d, d)] * n)  # HERE\n",
    ),
    (
        "classifier.softmax",
        HEAD + "class AttentionClassifier(nn.Module):\n"
        "    def forward(self, t):\n"
        "        w = F.softmax(t @ t.mT, -1)\n"
        "        logits = self.classifier(w @ t)\n"
        "        return F.softmax(logits, dim=-1)  # HERE\n",
    ),
]

CASES = SCALE + SOFTMAX + MASK + HEADS + REST


@pytest.mark.parametrize(("id", "source"), CASES, ids=[f"{place}-{id}" for place, (id, _) in enumerate(CASES)])
def test_the_marked_line_is_found_and_no_other(id: str, source: str) -> None:
    compile(source, "attempt.py", "exec")
    marked = [number for number, text in enumerate(source.splitlines(), 1) if text.endswith("# HERE")]
    assert len(marked) < 2

    assert lines.find(id, source.encode()) == (marked[0] if marked else None)


def test_a_mask_times_infinity_is_seen_wherever_it_is_and_nothing_else_is() -> None:
    twice = padded("a = ~keep * -torch.inf\nb = (1 - keep.float()) * float('-inf')\nreturn q + a + b")
    cut_out = padded("m = torch.triu(torch.ones(3, 3) * float('-inf'), 1)\nreturn (q @ k.mT + m).softmax(-1) @ v")

    assert lines.multiplies_mask_by_infinity(twice.encode())
    assert not lines.multiplies_mask_by_infinity(cut_out.encode())
    assert not lines.multiplies_mask_by_infinity(b"x = (")


LEAVES = (
    "w = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)\nreturn w.detach() @ v",
    "s = q @ k.mT\nw = (s - s.amax(-1, keepdim=True)).softmax(-1)\nreturn w.data @ v",
    "return (q @ k.mT / q.size(-1) ** 0.5).softmax(-1).detach() @ v",
    "w = (q @ k.mT).softmax(-1).detach()\nreturn w @ v",
    "with torch.no_grad():\n    w = (q @ k.mT).softmax(-1)\nreturn w @ v",
    "w = (q @ k.mT).softmax(-1)\nreturn w.data @ v",
    "w = torch.tensor((q @ k.mT).softmax(-1).tolist(), dtype=q.dtype)\nreturn w @ v",
    "w = torch.as_tensor((q @ k.mT).softmax(-1).detach().numpy())\nreturn w @ v",
    "q = q.clone().requires_grad_(False)\nreturn (q @ k.mT).softmax(-1) @ v",
    "torch.set_grad_enabled(False)\nreturn (q @ k.mT).softmax(-1) @ v",
    "s = q @ k.mT\nreturn torch.stack([s[0, 0, 0, 0].item() * v[0, 0, 0]])",
)
STAYS = (
    "s = q @ k.mT\ns = s - s.amax(-1, keepdim=True).detach()\ne = s.exp()\nreturn e / e.sum(-1, keepdim=True) @ v",
    "s = q @ k.mT\ntop = s.max()\ne = (s - top.data).exp()\nreturn e / e.sum(-1, keepdim=True) @ v",
    "s = q @ k.mT\ntop = torch.max(s, dim=-1, keepdim=True)[0].detach()\nreturn (s - top).softmax(-1) @ v",
    "s = q @ k.mT\ntop = s.max(-1, keepdim=True).values\nreturn (s - top.detach()).softmax(-1) @ v",
    "scale = torch.tensor(q.shape[-1]).sqrt()\nreturn (q @ k.mT / scale).softmax(-1) @ v",
    "root = torch.tensor(math.sqrt(q.size(-1)), dtype=q.dtype)\nreturn (q @ k.mT / root).softmax(-1) @ v",
    "low = torch.tensor(float('-inf'), device=q.device)\nreturn torch.where(q @ k.mT > 0, q @ k.mT, low).softmax(-1) @ v",
    "d = q.size(-1)\nn = torch.tensor([d, 2 * d])\nreturn (q @ k.mT / n[0] ** 0.5).softmax(-1) @ v",
    "return (q @ k.mT).softmax(-1) @ v",
)


@pytest.mark.parametrize("body", LEAVES)
def test_what_leaves_the_graph_is_seen(body: str) -> None:
    assert lines.leaves_the_graph(sdpa(body).encode())


@pytest.mark.parametrize("body", STAYS)
def test_what_needs_no_gradient_does_not_leave_the_graph(body: str) -> None:
    assert not lines.leaves_the_graph(sdpa(body).encode())


BOTH = """
def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys).bool().triu(num_keys - num_queries + 1)  # HERE

def causal_attention(q, k, v):
    mask = causal_mask(q.size(-2), k.size(-2))
    return (q @ k.mT).masked_fill({used}, float("-inf")).softmax(-1) @ v
"""


@pytest.mark.parametrize("used", ["mask", "~mask"])
def test_a_causal_mask_that_is_the_future_is_the_mistake_however_it_is_used(used: str) -> None:
    source = HEAD + BOTH.format(used=used)

    assert lines.find("mask.inverted", source.encode()) == source[: source.index("# HERE")].count("\n") + 1


@pytest.mark.parametrize("call", ["x.mean(1)", "F.avg_pool1d(x.mT, x.size(1)).squeeze(-1)"])
def test_a_mean_of_all_positions_is_found_however_it_is_called(call: str) -> None:
    source = mha(f"return {call}  # HERE")

    assert lines.find("pooling.counts_padding", source.encode()) == source[: source.index("# HERE")].count("\n") + 1


@pytest.mark.parametrize(("by", "tiny"), [("-1e-9", True), ("1e-9", True), ("-1e9", False), ("0.5", False)])
def test_flags_of_any_name_that_add_almost_nothing_are_seen(by: str, tiny: bool) -> None:
    code = f"s = s + (1 - real[:, None, None, :]) * {by}\nreturn s.softmax(-1)"
    source = f"def weigh(s, real):\n{textwrap.indent(code, '    ')}\n"

    assert lines.mask_adds_almost_nothing(source.encode()) is tiny


@pytest.mark.parametrize(
    ("fill", "tiny"),
    [
        ("s = s + torch.zeros_like(s).masked_fill(~mask, -1e-9)", True),
        ("s = s + torch.zeros_like(s).masked_fill(~mask, torch.finfo(s.dtype).eps)", True),
        ("s = s + torch.where(mask, 0.0, -1e-9)", True),
        ("s = s + torch.where(mask, 0.0, -1e9)", False),
        ("s.masked_fill(~mask, -1e-9)", False),  # lost, whatever the number
        ("hidden = s.masked_fill(~mask, 1e-9)", False),
    ],
)
def test_a_tiny_bias_is_seen_and_a_lost_fill_is_none(fill: str, tiny: bool) -> None:
    source = f"import torch\n\n\ndef weigh(s, mask):\n    {fill}\n    return s.softmax(-1)\n"

    assert lines.mask_adds_almost_nothing(source.encode()) is tiny


@pytest.mark.parametrize(("fill", "found"), [("masked_fill_", [5]), ("masked_fill", [])])
def test_a_tiny_fill_in_place_is_not_lost(fill: str, found: list[int]) -> None:
    source = (
        f"import torch\n\n\ndef weigh(scores, mask):\n    scores.{fill}(mask, 1e-9)\n    return scores.softmax(-1)\n"
    )

    assert lines.fill_with_almost_nothing(source.encode(), every=True) == found


@pytest.mark.parametrize(
    ("flags", "upright"),
    [
        ("keep[:, None, :, None]", True),
        ("keep[..., None]", True),
        ("keep.unsqueeze(1).unsqueeze(-1)", True),
        ("keep[:, None, None]", False),  # the keys follow
        ("keep[:, None]", False),
    ],
)
def test_flags_laid_on_the_queries_are_seen_before_the_softmax_only(flags: str, upright: bool) -> None:
    before = f"def f(s, v, keep):\n    s = s.masked_fill(~{flags}, -1e9)\n    return s.softmax(-1) @ v\n"
    behind = f"def f(s, v, keep):\n    out = s.softmax(-1) @ v\n    return out.masked_fill(~{flags}, 0.0).sum(1)\n"

    assert lines.masks_queries(before.encode()) is upright
    assert not lines.masks_queries(behind.encode())


@pytest.mark.parametrize(("dim", "queries"), [("-2", True), ("1", True), ("2", False), ("-1", False)])
def test_a_softmax_is_plainly_over_the_queries_where_its_number_says_so(dim: str, queries: bool) -> None:
    source = sdpa(f"w = torch.softmax(q @ k.mT, dim={dim})\nreturn w.mT @ v")

    assert lines.softmax_over_queries(source.encode()) is queries


def test_every_finder_is_of_a_known_mistake() -> None:
    assert set(lines.FINDERS) <= set(catalogue.load())
    assert set(catalogue.load()) >= lines.WHERE_RAISED


def test_a_method_in_a_chain_over_several_lines_is_found_where_its_name_stands() -> None:
    source = sdpa("w = (\n    (q @ k.mT)\n    .softmax(\n        dim=-2,\n    )\n)\nreturn w @ v")

    assert lines.find("softmax.query_axis", source.encode()) == source.splitlines().index("        .softmax(") + 1


def test_what_raises_at_its_own_line_is_shown_where_it_raised() -> None:
    source = mha(SPLIT + "w = (q @ k.mT).softmax(-1)\n" + MERGE).encode()

    assert lines.find("layout.view_of_strided", source, raised_line=20) == 20
    assert lines.find("layout.view_of_strided", source, raised_line=2000) is None
    assert lines.find("scale.embed_dim", source, raised_line=20) is None


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"def f(:\n",
        b"x = 1\0\n",
        b"\xff\xfe\x00nonsense",
        b"# -*- coding: no-such-code -*-\nx = 1\n",
        b"(" * 10_000,
        b"x = " + b"-" * 50_000 + b"1\n",
        b"x = a" + b".b" * 20_000 + b"\n",
        b"x = " + b"(a + " * 90 + b"1" + b")" * 90 + b" / (d ** 0.5)\n",
        b"x = 1" + b" + q / d ** 0.5" * 20_000 + b"\n",
        b"x = x\ny = y / x ** 0.5\n",
        b"def f(a): return g(a)\ndef g(a): return f(a) / a ** 0.5\n",
    ],
    ids=range(12),
)
def test_no_source_upsets_the_finder(source: bytes) -> None:
    before = sys.getrecursionlimit()

    for id in catalogue.load():
        lines.find(id, source)

    assert sys.getrecursionlimit() == before


def test_a_source_in_another_encoding_is_read_as_python_reads_it() -> None:
    body = sdpa("w = F.softmax(q @ k.mT, dim=-2)\nreturn w @ v")
    source = f"# -*- coding: latin-1 -*-\n# é\n{body}".encode("latin-1")

    assert lines.find("softmax.query_axis", source) == 9


def test_an_unknown_mistake_has_no_line() -> None:
    assert lines.find("no.such", b"x = 1\n") is None


READS = "class A(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.heads = n\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (READS + "    def forward(self, x):\n        return x * self.n_heads\n", [6]),
        (READS + "    def forward(self, x):\n        return x * self.heads if self.training else self.eval()\n", []),
        (READS + "    n_heads: int = 3\n    def forward(self, x):\n        return x * self.n_heads\n", []),
        (
            READS
            + "        self.register_buffer('mask', n)\n    def forward(self, x):\n        return x * self.mask\n",
            [],
        ),
        (
            READS
            + "        for m in n: self.register_buffer(m, n)\n    def forward(self, x):\n        return self.mask\n",
            [],
        ),
        (READS + "        setattr(self, 'a' + 'b', n)\n    def forward(self, x):\n        return x * self.ab\n", []),
        (
            READS
            + "    def more(self):\n        return 1\n    def forward(self, x):\n        return x * self.more()\n",
            [],
        ),
        (READS + "    def forward(self, x):\n        return x * self.cache\n\nmodel = A(2)\nmodel.cache = 3\n", []),
        (READS.replace("nn.Module", "Base") + "    def forward(self, x):\n        return x * self.n_heads\n", []),
    ],
)
def test_an_attribute_that_nothing_sets_is_found(source: str, expected: list[int]) -> None:
    assert lines.read_what_nothing_sets(source.encode()) == expected


@pytest.mark.parametrize(
    ("finder", "line", "expected"),
    [
        ("drop_without_a_mode", "w = F.dropout(w, self.p)", [3]),
        ("drop_without_a_mode", "w = nn.functional.dropout(w, p=0.1)", [3]),
        ("drop_without_a_mode", "w = F.dropout(w)", [3]),
        ("drop_without_a_mode", "w = F.dropout(w, 0.0)", []),
        ("drop_without_a_mode", "w = F.dropout(w, self.p, self.on)", []),
        ("drop_without_a_mode", "w = F.dropout(w, self.p if self.training else 0.0)", []),
        ("drop_without_a_mode", "w = F.dropout(w, **self.how)", []),
        ("drop_without_a_mode", "w = self.dropout(w)", []),
        ("change_softmax_in_place", "w = scores.softmax(-1)\n        w *= mask", [4]),
        ("change_softmax_in_place", "w = F.softmax(scores, dim=-1)\n        w.masked_fill_(mask, 0)", [4]),
        ("change_softmax_in_place", "w = scores.softmax(-1)\n        w = w * mask", []),
        ("change_softmax_in_place", "w = scores.softmax(-1).clone()\n        w *= mask", []),
        ("change_softmax_in_place", "scores *= 2\n        w = scores.softmax(-1)", []),
        ("hold_one_layer_several_times", "self.all = nn.ModuleList([layer for _ in range(4)])", [3]),
        ("hold_one_layer_several_times", "self.all = nn.ModuleList([nn.Linear(2, 2)] * 4)", [3]),
        ("hold_one_layer_several_times", "self.all = nn.ModuleList([layer for layer in layers])", []),
        ("hold_one_layer_several_times", "self.all = nn.ModuleList([copy.deepcopy(layer) for _ in range(4)])", []),
        ("hold_one_layer_several_times", "sizes = [1] * 4", []),
        ("score_without_tanh", "return self.to_q(torch.cat((hidden, encoder_outputs), 2)).softmax(1)", [3]),
        ("score_without_tanh", "return self.to_q(torch.cat([hidden[-1].unsqueeze(0), keys], 2)).softmax(1)", [3]),
        ("score_without_tanh", "return self.to_q(torch.cat((hidden, keys), 2).tanh()).softmax(1)", []),
        ("score_without_tanh", "return self.to_q(torch.cat((hidden, keys), 2)).tanh().softmax(1)", []),
        ("score_without_tanh", "return self.to_q(torch.cat((embedded, hidden), 2)).softmax(1)", []),
        ("score_without_tanh", "w.softmax(1); return self.to_q(torch.cat((context, hidden), 2))", []),
        ("compute_for_nothing", "q = self.to_q(w)\n        return w @ w.mT", [3]),
        ("compute_for_nothing", "q = self.to_q(w)\n        return q @ w.mT", []),
        ("compute_for_nothing", "q = self.count(w)\n        return w @ w.mT", []),
        ("compute_for_nothing", "q = self.to_q(w)\n        return {'q': q}", []),
    ],
)
def test_lines_that_are_wrong_with_any_reading(finder: str, line: str, expected: list[int]) -> None:
    made = "\n    def __init__(self):\n        self.to_q = nn.Linear(2, 2)\n" if "to_q" in line else "\n"
    source = f"class A(nn.Module):\n    def forward(self, scores, w, mask, layer, layers):\n        {line}\n{made}"

    assert getattr(lines, finder)(source.encode()) == expected


def test_a_name_is_read_where_its_function_does_not_set_it() -> None:
    source = b"def f(x):\n    return x + T\ndef g(x):\n    T = 2\n    return x + T\n"

    assert lines.read_names(source, {"T"}) == [2]
