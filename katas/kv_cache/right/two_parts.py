# style: past and new tokens scored apart, one softmax over both; new memory filled by copies; detached cache
# edge fails: gradients_through_cache
import torch
from torch import nn


def grown(past, new):
    """New memory with the past copied in front of the new ones."""
    memory = new.new_empty(new.shape[0], new.shape[1], past.shape[2] + new.shape[2], new.shape[3])
    memory[:, :, : past.shape[2]].copy_(past)
    memory[:, :, past.shape[2] :].copy_(new)
    return memory


class CachedSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads > 0:
            raise ValueError("num_heads must divide embed_dim")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, cache=None):
        T = x.shape[1]
        q, k, v = (torch.stack(f(x).chunk(self.num_heads, -1), 1) for f in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.mT
        later = torch.triu(torch.ones(T, T, device=x.device), 1).bool()
        scores = torch.where(later, torch.tensor(-1e9, dtype=x.dtype, device=x.device), scores)
        if cache is None:
            weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
            out, kept = weights @ v, (k.detach(), v.detach())
        else:
            past_k, past_v = cache
            both = torch.cat([q @ past_k.mT, scores], dim=-1) / q.shape[-1] ** 0.5
            old, new = both.softmax(-1).split([past_k.shape[2], T], dim=-1)
            out = old @ past_v + new @ v
            kept = (grown(past_k, k.detach()), grown(past_v, v.detach()))
        return self.o_proj(torch.cat(out.unbind(1), -1)), kept
