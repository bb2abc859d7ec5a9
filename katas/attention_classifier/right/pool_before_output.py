# style: the average taken before o_proj, which is linear; -inf with empty rows opened; folded batch and baddbmm
import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, E, H):
        super().__init__()
        if E % H > 0:
            raise ValueError((E, H))
        self.H, self.D = H, E // H
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(E, E) for _ in range(4))

    def split(self, x):
        B, T, _ = x.shape
        return x.reshape(B, T, self.H, self.D).permute(0, 2, 1, 3).reshape(B * self.H, T, self.D)

    def forward(self, x, keep, share):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        bias = torch.zeros(keep.shape, dtype=x.dtype, device=x.device)
        bias = bias.masked_fill(~keep & keep.any(1, keepdim=True), -math.inf).repeat_interleave(self.H, 0)[:, None]
        weights = torch.baddbmm(bias, q, k.mT, alpha=1 / math.sqrt(self.D)).softmax(-1)
        mean = torch.bmm(share.repeat_interleave(self.H, 0)[:, None], torch.bmm(weights, v))  # (B*H, 1, D)
        return self.o_proj(mean.reshape(-1, self.H * self.D)) * keep.any(1, keepdim=True)


class AttentionClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_heads, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.attention = SelfAttention(embed_dim, num_heads)
        self.classifier = nn.Linear(embed_dim, num_classes)

    def forward(self, token_ids, keep=None):
        keep = torch.full_like(token_ids, True, dtype=torch.bool) if keep is None else keep
        x = self.embedding(token_ids)
        share = keep.to(x.dtype) / torch.maximum(keep.sum(1, keepdim=True), torch.ones_like(keep[:, :1], dtype=torch.long))
        return self.classifier(self.attention(x, keep, share.to(x.dtype)))
