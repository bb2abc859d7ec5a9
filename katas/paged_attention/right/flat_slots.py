# style: the memory as one row of slots, picked by index_select; einsum copies no key for the heads of a group
# edge fails: nan_past_a_length
import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    (B, H, D), (N, S, G, Dv) = q.shape, v_pages.shape
    t = torch.arange(block_table.shape[1] * S, device=q.device)
    slot = block_table[:, t // S] * S + t % S
    slot = torch.where(t < lengths[:, None], slot, 0).flatten()
    k = k_pages.reshape(N * S, G, D).index_select(0, slot).view(B, -1, G, D)
    v = v_pages.reshape(N * S, G, Dv).index_select(0, slot).view(B, -1, G, Dv)
    scores = torch.einsum("bgnd,btgd->bngt", q.reshape(B, G, H // G, D), k)
    scores = scores * D**-0.5
    scores = scores.masked_fill((t >= lengths[:, None])[:, None, None], torch.finfo(q.dtype).min)
    out = torch.einsum("bngt,btgd->bgnd", scores.softmax(dim=3), v)
    return out.reshape(B, H, Dv)
