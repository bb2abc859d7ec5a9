# style: the whole table is gathered, and slots past a length are masked
# edge fails: nan_past_a_length
import math

import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    B, H, D = q.shape
    N, S, G, Dv = v_pages.shape
    M = block_table.shape[1]
    pages = block_table.clamp(min=0)
    k = k_pages[pages].reshape(B, M * S, G, D).transpose(1, 2)
    v = v_pages[pages].reshape(B, M * S, G, Dv).transpose(1, 2)
    k = k.repeat_interleave(H // G, dim=1)
    v = v.repeat_interleave(H // G, dim=1)

    scores = q.unsqueeze(2) @ k.transpose(-2, -1) / math.sqrt(D)
    keep = torch.arange(M * S, device=q.device) < lengths[:, None]
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return (weights @ v).squeeze(2)
