# style: tril and triu of ones; an additive mask with the dtype's minimum
import torch
import torch.nn.functional as F


def sliding_window_mask(nq, nk, w, s=0, device=None):
    if w < 1:
        raise ValueError("window must be positive")
    if s < 0:
        raise ValueError("sinks must not be negative")
    ahead = nk - nq
    lower = torch.ones(nq, nk, dtype=torch.bool, device=device).tril(ahead)
    band = lower.triu(ahead - w + 1)
    band[:, :s] = lower[:, :s]
    return band


def sliding_window_attention(query, key, value, w, s=0):
    keep = sliding_window_mask(query.size(2), key.size(2), w, s, device=query.device)
    bias = torch.zeros(keep.shape, dtype=query.dtype, device=query.device)
    bias.masked_fill_(keep.logical_not(), torch.finfo(query.dtype).min)
    logits = torch.einsum("bhid,bhjd->bhij", query * query.size(-1) ** -0.5, key) + bias
    return torch.einsum("bhij,bhjd->bhid", F.softmax(logits, dim=-1), value)
