# breaks: values, past_and_self_count, weights_sum_to_one
# mistake: none
import torch


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


def causal_attention(q, k, v):
    return torch.zeros_like(v[..., -q.shape[-2] :, :])
