# style: softmax over all keys, then the mask, then divided by what is left
# edge fails: large_scores
import torch


def causal_mask(num_queries, num_keys, device=None):
    rows = torch.arange(num_keys - num_queries, num_keys, device=device)
    cols = torch.arange(num_keys, device=device)
    return rows.view(-1, 1) >= cols.view(1, -1)


def causal_attention(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    weights = weights * causal_mask(q.shape[2], k.shape[2], q.device).to(weights.dtype)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.einsum("bhij,bhjd->bhid", weights, v)
