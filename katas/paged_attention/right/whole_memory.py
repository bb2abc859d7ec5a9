# style: every query scores all N * S slots of the memory, and those that are not its own are hidden
# edge fails: nan_past_a_length, half_precision
import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    B, H, D = q.shape
    N, S, G, Dv = v_pages.shape
    own = torch.zeros(B, N, S, dtype=torch.bool, device=q.device)
    for b in range(B):
        length = int(lengths[b])
        for m in range(block_table.shape[1]):
            if m * S < length:
                own[b, block_table[b, m], : length - m * S] = True
    keys = k_pages.flatten(0, 1).repeat_interleave(H // G, dim=1)
    values = v_pages.flatten(0, 1).repeat_interleave(H // G, dim=1)
    scores = torch.einsum("bhd,thd->bht", q, keys) / D**0.5
    scores = scores.masked_fill(~own.flatten(1)[:, None], -1e9)
    return torch.einsum("bht,thd->bhd", scores.softmax(-1), values)
