# style: three projections as one product, the scale as a buffer on both sides
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        self.num_heads = num_heads
        self.register_buffer("scale", torch.tensor((embed_dim / num_heads) ** -0.25, dtype=torch.float64))
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, keep):
        B, T, E = x.shape
        D = E // self.num_heads
        layers = self.q_proj, self.k_proj, self.v_proj
        weight, bias = torch.cat([one.weight for one in layers]), torch.cat([one.bias for one in layers])
        q, k, v = F.linear(x, weight, bias).view(B, T, 3, self.num_heads, D).permute(2, 0, 3, 1, 4)
        scores = (q * self.scale.to(x.dtype)) @ (k * self.scale.to(x.dtype)).mT
        scores = scores.masked_fill(~keep[:, None, None, :], torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
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
