import math

import torch
from torch import nn


class SelfAttentionLayer(nn.Module):
    """Self-attention with several heads. `visible[b, i, j]` is True where token i of sample b may look at token j."""

    def __init__(self, *, width: int, n_heads: int, p_drop: float = 0.0):
        super().__init__()
        if width % n_heads:
            raise ValueError(f"{n_heads} heads do not fit into a width of {width}")
        self.n_heads = n_heads
        self.queries = nn.Linear(width, width)
        self.keys = nn.Linear(width, width)
        self.values = nn.Linear(width, width)
        self.mix = nn.Linear(width, width)
        self.drop = nn.Dropout(p_drop)

    def forward(self, *, inputs: torch.Tensor, visible: "torch.Tensor | None" = None) -> torch.Tensor:
        q = self.into_heads(self.queries(inputs))
        k = self.into_heads(self.keys(inputs))
        v = self.into_heads(self.values(inputs))
        logits = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
        if visible is not None:
            logits = torch.where(visible[:, None], logits, torch.tensor(-1e30, dtype=logits.dtype))
        probabilities = self.drop(torch.softmax(logits, dim=-1))
        mixed = torch.einsum("bhij,bhjd->bihd", probabilities, v)
        return self.mix(mixed.flatten(2))

    def into_heads(self, t: torch.Tensor) -> torch.Tensor:
        return t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
