# style: time first, (T, B, E); one product for q, k and v; layers in a Sequential beside their names
import torch
import torch.nn.functional as F
from torch import nn


class TransformerBlock(nn.Module):
    def __init__(self, width, heads, hidden, dropout=0.0):
        super().__init__()
        if width // heads * heads != width:
            raise ValueError("width must be a multiple of heads")
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Module()
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self.attention, name, nn.Linear(width, width))
        self.norm2, self.mlp_in, self.mlp_out = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        a = self.attention
        x = x.transpose(0, 1)  # (T, B, E)
        T, B, E = x.shape
        layers = a.q_proj, a.k_proj, a.v_proj
        qkv = F.linear(self.norm1(x), torch.cat([m.weight for m in layers]), torch.cat([m.bias for m in layers]))
        q, k, v = qkv.view(T, B, 3, self.heads, -1).unbind(2)
        scores = torch.einsum("ibhd,jbhd->ijbh", q, k) / (E // self.heads) ** 0.5
        later = torch.full((T, T), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
        weights = (scores + later[:, :, None, None]).softmax(dim=1)
        mixed = torch.einsum("ijbh,jbhd->ibhd", weights, v).reshape(T, B, E)
        x = x + self.drop(a.o_proj(mixed))
        mlp = nn.Sequential(self.norm2, self.mlp_in, nn.GELU(), self.mlp_out, self.drop)
        mlp.training = self.training
        return (x + mlp(x)).transpose(0, 1)
