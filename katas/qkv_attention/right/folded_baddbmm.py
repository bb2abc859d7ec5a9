# style: as torch's own module computes it: batch and heads folded, a float mask added by baddbmm, bmm, a view of the weights
# edge fails: empty_rows
import torch
from torch import nn
from torch.nn.functional import dropout, linear


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim // num_heads * num_heads != embed_dim:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key, value, mask=None):
        bsz, tgt_len, embed_dim = query.shape
        src_len, head_dim = key.shape[1], embed_dim // self.num_heads
        query, key, value = (x.transpose(0, 1) for x in (query, key, value))  # time first
        q = linear(query, self.q_proj.weight, self.q_proj.bias)
        k = linear(key, self.k_proj.weight, self.k_proj.bias)
        v = linear(value, self.v_proj.weight, self.v_proj.bias)
        q = q.contiguous().view(tgt_len, bsz * self.num_heads, head_dim).transpose(0, 1)
        k = k.contiguous().view(src_len, bsz * self.num_heads, head_dim).transpose(0, 1)
        v = v.contiguous().view(src_len, bsz * self.num_heads, head_dim).transpose(0, 1)
        q_scaled = q * head_dim**-0.5
        if mask is not None:
            bias = torch.zeros(bsz, self.num_heads, tgt_len, src_len, dtype=q.dtype, device=q.device)
            bias = bias.masked_fill(~mask, float("-inf")).view(bsz * self.num_heads, tgt_len, src_len)
            scores = torch.baddbmm(bias, q_scaled, k.transpose(-2, -1))
        else:
            scores = torch.bmm(q_scaled, k.transpose(-2, -1))
        weights = scores.softmax(dim=-1)
        out = torch.bmm(dropout(weights, self.p, self.training), v)
        out = out.transpose(0, 1).contiguous().view(tgt_len * bsz, embed_dim)
        out = linear(out, self.o_proj.weight, self.o_proj.bias).view(tgt_len, bsz, embed_dim).transpose(0, 1)
        return out, weights.view(bsz, self.num_heads, tgt_len, src_len)
