# breaks: values
# mistake: none
import torch


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


def causal_attention(q, k, v):
    tq, tk = q.shape[-2], k.shape[-2]
    counts = torch.arange(1, tk + 1, device=v.device, dtype=v.dtype)[:, None]
    return (v.cumsum(-2) / counts)[..., tk - tq :, :]
