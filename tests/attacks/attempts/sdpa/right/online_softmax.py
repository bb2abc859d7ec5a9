# The softmax is computed key by key, with a running maximum and an `if`.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    best = q.new_full((*q.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(best), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for at in range(k.shape[-2]):
        score = (q * k[..., at : at + 1, :]).sum(-1, keepdim=True) / q.shape[-1] ** 0.5
        if bool((score > best).any()):
            higher = torch.maximum(score, best)
            shrink = (best - higher).exp()
            best, total, out = higher, total * shrink, out * shrink
        weight = (score - best).exp()
        total, out = total + weight, out + weight * v[..., at : at + 1, :]
    return out / total
