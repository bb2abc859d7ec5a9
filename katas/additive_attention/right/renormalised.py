# style: softmax over all keys, then keep and renormalise; einsum for score and mixture
# edge fails: nothing_to_attend_to, large_scores
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, a, b, hidden):
        super().__init__()
        self.q_proj = nn.Linear(a, hidden, bias=False)
        self.k_proj = nn.Linear(b, hidden, bias=False)
        self.score_proj = nn.Linear(hidden, 1, bias=False)

    def forward(self, query, keys, values, keep=None):
        joined = torch.tanh(self.q_proj(query)[:, :, None] + self.k_proj(keys)[:, None])
        weights = torch.einsum("bijh,h->bij", joined, self.score_proj.weight[0]).softmax(-1)
        if keep is not None:
            weights = weights * keep[:, None, :].to(weights.dtype)
            weights = weights / weights.sum(-1, keepdim=True)
        return torch.einsum("bij,bjd->bid", weights, values)
