# breaks: values
# mistake: mask.zero_times_inf
import torch
import torch.nn.functional as F


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    scores = scores + torch.triu(torch.ones_like(scores), k.shape[-2] - q.shape[-2] + 1) * float("-inf")
    weights = F.softmax(scores, dim=-1)
    return weights @ v
