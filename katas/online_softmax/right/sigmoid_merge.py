# style: as the ring attention codes merge: a sigmoid of the difference; a softmax for the parts
import torch
import torch.nn.functional as F


def partial_attention(q, k, v, mask=None):
    scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v, scores.logsumexp(-1)
    scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    empty = ~mask.expand(scores.shape).any(-1)
    weights = torch.where(empty[..., None], torch.zeros_like(scores), scores.softmax(-1))
    return weights @ v, scores.logsumexp(-1)


def merge_partials(out_a, lse_a, out_b, lse_b):
    nothing = (lse_a == -torch.inf) & (lse_b == -torch.inf)
    apart = torch.where(nothing, torch.zeros_like(lse_a), lse_b - lse_a)
    share = torch.sigmoid(apart)[..., None]  # of the second part
    out = out_a + share * (out_b - out_a)
    lse = torch.where(nothing, lse_a, torch.maximum(lse_a, lse_b) + F.softplus(-apart.abs()))
    return torch.where(nothing[..., None], torch.zeros_like(out), out), lse
