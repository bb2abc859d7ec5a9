# style: weights stacked to (H, size, input_dim), einsum throughout, scores laid out (i, j, h, batch)
import torch
from torch import nn


class Weights(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        for name, size in (("q_proj", key_dim), ("k_proj", key_dim), ("v_proj", value_dim)):
            self.add_module(name, nn.Linear(input_dim, size, bias=False))


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList()
        for i in range(num_heads):
            self.heads.append(Weights(input_dim, key_dim, value_dim))
        self.scale = key_dim**0.5

    def forward(self, x):
        lead = x.shape[:-2]
        flat = x.reshape(-1, *x.shape[-2:])
        wq, wk, wv = (torch.stack([getattr(h, n).weight for h in self.heads]) for n in ("q_proj", "k_proj", "v_proj"))
        q = torch.einsum("bti,hdi->tbhd", flat, wq) / self.scale
        k = torch.einsum("bti,hdi->tbhd", flat, wk)
        v = torch.einsum("bti,hdi->tbhd", flat, wv)
        weights = torch.einsum("ibhd,jbhd->ijbh", q, k).softmax(dim=1)
        out = torch.einsum("ijbh,jbhd->bihd", weights, v)
        return out.reshape(*lead, x.shape[-2], -1)
