# style: online softmax over chunks of keys
import torch
from torch import nn


class SelfAttention(nn.Module):
    CHUNK = 2

    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        q = self.q_proj(x) / self.q_proj.out_features**0.5
        top = total = out = None
        for part in x.split(self.CHUNK, dim=-2):
            scores = q @ self.k_proj(part).transpose(-1, -2)
            here = scores.amax(-1, keepdim=True)
            new = here if top is None else torch.maximum(top, here)
            e = torch.exp(scores - new)
            if top is None:
                total, out = e.sum(-1, keepdim=True), e @ self.v_proj(part)
            else:
                old = torch.exp(top - new)
                total, out = total * old + e.sum(-1, keepdim=True), out * old + e @ self.v_proj(part)
            top = new
        return out / total
