"""FlashAttention's forward pass: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, block_q: int, block_k: int, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv) -> out (B, H, Tq, Dv), lse (B, H, Tq)."""
    Tq, Tk = q.shape[2], k.shape[2]
    outs, lses = [], []
    for first in range(0, Tq, block_q):
        queries = q[:, :, first : first + block_q] / math.sqrt(q.shape[-1])  # (B, H, bq, D)
        position = torch.arange(first, first + queries.shape[2], device=q.device)[:, None] + Tk - Tq  # (bq, 1)
        largest = queries.new_full((*queries.shape[:3], 1), float("-inf"))  # (B, H, bq, 1)
        total = torch.zeros_like(largest)
        out = queries.new_zeros(*queries.shape[:3], v.shape[-1])  # (B, H, bq, Dv), not divided yet

        # A tile that begins after the last query of the block is wholly in the future. With causal, the first tile has a key
        # for every query, so `largest` is finite from then on.
        last = min(Tk, first + queries.shape[2] + Tk - Tq) if causal else Tk
        for start in range(0, last, block_k):
            keys, values = k[:, :, start : start + block_k], v[:, :, start : start + block_k]
            scores = queries @ keys.transpose(-2, -1)  # (B, H, bq, bk)
            if causal:
                key = torch.arange(start, start + keys.shape[2], device=q.device)  # (bk,)
                scores = scores.masked_fill(key > position, float("-inf"))

            # What was summed with the old maximum is too large by exp(new - old).
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True).detach())
            shrink = (largest - new).exp()
            counts = (scores - new).exp()
            total = total * shrink + counts.sum(dim=-1, keepdim=True)
            out = out * shrink + counts @ values
            largest = new

        outs.append(out / total)
        lses.append((largest + total.log()).squeeze(-1))
    return torch.cat(outs, dim=2), torch.cat(lses, dim=2)
