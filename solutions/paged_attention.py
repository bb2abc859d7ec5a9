"""Paged attention: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def paged_attention(q: Tensor, k_pages: Tensor, v_pages: Tensor, block_table: Tensor, lengths: Tensor) -> Tensor:
    """q (B, H, D), pages (N, S, G, D) and (N, S, G, Dv), block_table (B, M), lengths (B,) -> (B, H, Dv)."""
    B, H, D = q.shape
    _, S, G, Dv = v_pages.shape
    M = block_table.shape[1]

    # An entry of -1 is no page. It reads page 0 instead: no slot of it is in use, so what is read there is masked.
    pages = block_table.clamp(min=0)
    k = k_pages[pages].flatten(1, 2)  # (B, M, S, G, D) -> (B, M * S, G, D): token t is at t
    v = v_pages[pages].flatten(1, 2)  # (B, M * S, G, Dv)

    in_use = torch.arange(M * S, device=q.device) < lengths[:, None]  # (B, M * S)
    # A weight of 0 does not hide a NaN. So slots that hold no token become 0 before they are used.
    k = k.masked_fill(~in_use[:, :, None, None], 0.0)
    v = v.masked_fill(~in_use[:, :, None, None], 0.0)

    # The H / G query heads of a group are neighbours, and share one key-value head.
    grouped = q.unflatten(1, (G, H // G))  # (B, G, H / G, D)
    scores = torch.einsum("bgnd,btgd->bgnt", grouped, k) / math.sqrt(D)  # (B, G, H / G, M * S)
    weights = scores.masked_fill(~in_use[:, None, None, :], float("-inf")).softmax(dim=-1)
    return torch.einsum("bgnt,btgd->bgnd", weights, v).reshape(B, H, Dv)
