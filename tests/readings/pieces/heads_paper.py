import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.wq = nn.Linear(d_model, d_k, bias=False)
        self.wk = nn.Linear(d_model, d_k, bias=False)
        self.wv = nn.Linear(d_model, d_v, bias=False)
        self.scale = d_k**-0.5

    def forward(self, x):
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * self.scale, dim=-1)
        return torch.matmul(weights, v)


class MultiHead(nn.Module):
    def __init__(self, d_model, d_k, d_v, h):
        super().__init__()
        self.attn_heads = nn.ModuleList(SingleHead(d_model, d_k, d_v) for _ in range(h))

    def forward(self, x):
        outputs = []
        for head in self.attn_heads:
            outputs.append(head(x))
        return torch.cat(outputs, dim=-1)
