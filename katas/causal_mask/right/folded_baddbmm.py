# style: batch and heads folded, an additive mask inside baddbmm
import torch


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, device=device).tril(num_keys - num_queries) > 0.5


def causal_attention(q, k, v):
    b, h, tq, d = q.shape
    tk = k.size(2)
    bias = torch.zeros(tq, tk, dtype=q.dtype, device=q.device)
    bias.masked_fill_(~causal_mask(tq, tk, q.device), float("-inf"))
    scores = torch.baddbmm(
        bias.expand(b * h, tq, tk),
        q.reshape(b * h, tq, d),
        k.reshape(b * h, tk, d).transpose(1, 2),
        beta=1,
        alpha=1 / d**0.5,
    )
    out = torch.bmm(scores.softmax(2), v.reshape(b * h, tk, -1))
    return out.view(b, h, tq, -1)
