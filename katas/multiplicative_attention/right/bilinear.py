# style: F.bilinear over all pairs, dtype's minimum
# edge fails: nothing_to_attend_to
import torch
import torch.nn.functional as F
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        (B, Tq, _), Tk = query.shape, keys.shape[1]
        left = query.unsqueeze(2).expand(-1, -1, Tk, -1).contiguous()
        right = keys.unsqueeze(1).expand(-1, Tq, -1, -1).contiguous()
        scores = F.bilinear(left, right, self.k_proj.weight.unsqueeze(0)).squeeze(-1)
        if keep is not None:
            scores = torch.where(keep.reshape(B, 1, Tk), scores, torch.finfo(scores.dtype).min)
        return (scores.softmax(-1).unsqueeze(-1) * values.unsqueeze(1)).sum(2)
