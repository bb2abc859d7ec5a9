# breaks: gradients_with_padding
# mistake: gradient.detached
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, keep):
        B, T, E = x.shape
        D = E // self.num_heads
        q = self.q_proj(x).view(B, T, self.num_heads, D).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.num_heads, D).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.num_heads, D).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(D)
        scores = scores.masked_fill(~keep[:, None, None, :], torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        if not keep.all():
            weights = weights.detach()
        out = (weights @ v).transpose(1, 2).reshape(B, T, E)
        return self.o_proj(out)


class AttentionClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_heads, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.attention = Attention(embed_dim, num_heads)
        self.classifier = nn.Linear(embed_dim, num_classes)

    def forward(self, token_ids, keep=None):
        if keep is None:
            keep = torch.ones(token_ids.shape, dtype=torch.bool, device=token_ids.device)
        x = self.attention(self.embedding(token_ids), keep)
        real = keep.unsqueeze(-1).to(x.dtype)
        pooled = (x * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        return self.classifier(pooled)
