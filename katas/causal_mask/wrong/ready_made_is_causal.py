# breaks: values, last_queries_alone, from_scratch
# mistake: mask.top_left
import torch
import torch.nn.functional as F


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


def causal_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
