# breaks: from_scratch
# mistake: none
import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("num_heads does not divide embed_dim")
        self.H, self.p = num_heads, dropout
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, nn.Linear(embed_dim, embed_dim))

    def forward(self, x, mask=None):
        B, T, E = x.shape
        if mask is not None:
            mask = ~mask.expand(B, self.H, T, T).reshape(-1, T, T)
        x = x.transpose(0, 1)
        layers = [self.q_proj, self.k_proj, self.v_proj]
        weight, bias = torch.cat([m.weight for m in layers]), torch.cat([m.bias for m in layers])
        out, _ = F.multi_head_attention_forward(
            x, x, x, E, self.H, weight, bias, None, None, False, self.p,
            self.o_proj.weight, self.o_proj.bias, self.training, None, True, mask,
        )
        return out.transpose(0, 1)
