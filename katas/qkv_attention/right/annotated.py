# style: a free function attention(), the three projections in one zip, -1e9, a list as the result
# edge fails: empty_rows, half_precision
import math

import torch.nn as nn
import torch.nn.functional as F


def attention(query, key, value, mask=None, p=0.0, training=False):
    d_k = query.size(-1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    return F.dropout(p_attn, p, training) @ value, p_attn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__()
        if d_model % h:
            raise ValueError("h must divide d_model")
        self.d_k, self.h, self.p = d_model // h, h, dropout
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value), strict=True)
        ]
        x, attn = attention(query, key, value, mask, self.p, self.training)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return [self.o_proj(x), attn]
