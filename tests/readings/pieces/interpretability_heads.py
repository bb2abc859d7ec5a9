from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    d_model: int = 64
    n_heads: int = 4
    d_head: int = 16
    init_range: float = 0.02


class Attention(nn.Module):
    IGNORE: torch.Tensor

    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.W_Q = nn.Parameter(torch.empty((cfg.n_heads, cfg.d_model, cfg.d_head)))
        self.W_K = nn.Parameter(torch.empty((cfg.n_heads, cfg.d_model, cfg.d_head)))
        self.W_V = nn.Parameter(torch.empty((cfg.n_heads, cfg.d_model, cfg.d_head)))
        self.W_O = nn.Parameter(torch.empty((cfg.n_heads, cfg.d_head, cfg.d_model)))
        self.b_Q = nn.Parameter(torch.zeros((cfg.n_heads, cfg.d_head)))
        self.b_K = nn.Parameter(torch.zeros((cfg.n_heads, cfg.d_head)))
        self.b_V = nn.Parameter(torch.zeros((cfg.n_heads, cfg.d_head)))
        self.b_O = nn.Parameter(torch.zeros((cfg.d_model)))
        for weight in (self.W_Q, self.W_K, self.W_V, self.W_O):
            nn.init.normal_(weight, std=cfg.init_range)
        self.register_buffer("IGNORE", torch.tensor(float("-inf")))

    def forward(self, normalized_resid_pre):
        q = torch.einsum("bpm,nmh->bpnh", normalized_resid_pre, self.W_Q) + self.b_Q
        k = torch.einsum("bpm,nmh->bpnh", normalized_resid_pre, self.W_K) + self.b_K
        v = torch.einsum("bpm,nmh->bpnh", normalized_resid_pre, self.W_V) + self.b_V

        attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k)
        attn_scores = attn_scores / self.cfg.d_head**0.5
        attn_pattern = self.apply_causal_mask(attn_scores).softmax(-1)

        z = torch.einsum("bknh,bnqk->bqnh", v, attn_pattern)
        return torch.einsum("bqnh,nhm->bqm", z, self.W_O) + self.b_O

    def apply_causal_mask(self, attn_scores):
        all_ones = torch.ones(attn_scores.size(-2), attn_scores.size(-1), device=attn_scores.device)
        mask = torch.triu(all_ones, diagonal=1).bool()
        return attn_scores.masked_fill(mask, self.IGNORE)
