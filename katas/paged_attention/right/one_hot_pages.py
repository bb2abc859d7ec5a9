# style: the table as a matrix of zeros and ones, multiplied with the pages; weights masked and renormalised
# edge fails: nan_past_a_length, large_scores
import torch


def paged_attention(q, k_pages, v_pages, block_table, lengths):
    B, H, D = q.shape
    N, S, G, _ = k_pages.shape
    M = block_table.shape[1]
    pick = (block_table[..., None] == torch.arange(N, device=q.device)).to(q.dtype)
    k = torch.einsum("bmn,nsgd->bgmsd", pick, k_pages).flatten(2, 3)
    v = torch.einsum("bmn,nsgd->bgmsd", pick, v_pages).flatten(2, 3)
    owner = torch.arange(H, device=q.device) * G // H
    scores = (q[:, :, None, :] * k[:, owner]).sum(-1) * D**-0.5
    place = torch.arange(M * S, device=q.device).expand(B, M * S)
    seen = place.lt(lengths[:, None])[:, None, :]
    weights = torch.softmax(scores, -1) * seen
    weights = weights / weights.sum(-1, keepdim=True)
    return (weights[..., None] * v[:, owner]).sum(2)
