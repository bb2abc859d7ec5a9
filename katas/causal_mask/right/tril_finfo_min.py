# style: tril with a diagonal; the dtype's minimum instead of -inf
import torch


def causal_mask(num_queries, num_keys, device=None):
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return torch.tril(ones, diagonal=num_keys - num_queries)


def causal_attention(q, k, v):
    d = q.size(-1)
    attn = torch.matmul(q, k.transpose(-1, -2)) * (d ** -0.5)
    m = causal_mask(q.size(-2), k.size(-2), device=q.device)
    attn = torch.where(m, attn, torch.finfo(attn.dtype).min)
    return torch.matmul(torch.softmax(attn, -1), v)
