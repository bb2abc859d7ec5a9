import torch
import torch.nn.functional as F
from torch import nn


class DecoderAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, kdim=None, dropout=0.0):
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim = embed_dim // num_heads
        kdim = embed_dim if kdim is None else kdim
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(kdim, embed_dim)
        self.v_proj = nn.Linear(kdim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, encoder_out, encoder_padding_mask=None):
        """x and encoder_out are Time x Batch x Channel; encoder_padding_mask is (batch, src_len), True at padding."""
        tgt_len, bsz, _ = x.size()
        src_len = encoder_out.size(0)
        q = self.q_proj(x) * self.head_dim**-0.5
        k = self.k_proj(encoder_out)
        v = self.v_proj(encoder_out)
        q = q.contiguous().view(tgt_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        k = k.contiguous().view(src_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        v = v.contiguous().view(src_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        weights = torch.bmm(q, k.transpose(1, 2)).view(bsz, self.num_heads, tgt_len, src_len)
        if encoder_padding_mask is not None:
            weights = weights.masked_fill(encoder_padding_mask[:, None, None], float("-inf"))
        weights = F.softmax(weights, dim=-1)
        probs = F.dropout(weights, p=self.dropout, training=self.training)
        out = torch.bmm(probs.view(bsz * self.num_heads, tgt_len, src_len), v)
        out = out.transpose(0, 1).contiguous().view(tgt_len, bsz, self.embed_dim)
        return self.out_proj(out), weights
