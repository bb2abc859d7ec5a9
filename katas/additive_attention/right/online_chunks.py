# style: chunks of keys with an online softmax, so that (B, Tq, Tk, hidden_dim) never exists
# edge fails: nothing_to_attend_to
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    CHUNK = 3

    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query, keys, values, keep=None):
        q = self.q_proj(query)[:, :, None]
        top = query.new_full((*query.shape[:2], 1), torch.finfo(query.dtype).min)
        total = torch.zeros_like(top)
        out = query.new_zeros(*query.shape[:2], values.shape[-1])
        for start in range(0, keys.shape[1], self.CHUNK):
            stop = start + self.CHUNK
            s = self.score_proj((q + self.k_proj(keys[:, start:stop])[:, None]).tanh())[..., 0]
            if keep is not None:
                s = s.masked_fill(~keep[:, None, start:stop], torch.finfo(s.dtype).min)
            new = torch.maximum(top, s.amax(-1, keepdim=True)).detach()
            e, old = (s - new).exp(), (top - new).exp()
            total, out, top = total * old + e.sum(-1, keepdim=True), out * old + e @ values[:, start:stop], new
        return out / total
