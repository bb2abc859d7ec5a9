# style: the rows of k_proj and v_proj are repeated, not the keys; one product for q, k and v; empty rows become 0
# edge fails: keys_not_copied
import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        size, rest = divmod(embed_dim, num_heads)
        if rest or num_heads % num_kv_heads:
            raise ValueError("the numbers of heads do not divide")
        self.shape = (num_heads, size)
        self.kv = (num_kv_heads, size)
        self.q_proj, self.o_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.k_proj, self.v_proj = (nn.Linear(embed_dim, num_kv_heads * size) for _ in range(2))

    def whole(self, part):
        heads, size = self.kv
        return part.unflatten(0, (heads, size)).repeat_interleave(self.shape[0] // heads, 0).flatten(0, 1)

    def forward(self, x, mask=None):
        weight = torch.cat([self.q_proj.weight, self.whole(self.k_proj.weight), self.whole(self.v_proj.weight)])
        bias = torch.cat([self.q_proj.bias, self.whole(self.k_proj.bias), self.whole(self.v_proj.bias)])
        q, k, v = F.linear(x, weight, bias).unflatten(-1, (3, *self.shape)).permute(2, 0, 3, 1, 4)
        scores = (q * self.shape[1] ** -0.5) @ k.mT
        if mask is None:
            return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        weights = scores.masked_fill(~mask, torch.finfo(x.dtype).min).softmax(-1) * mask
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))
