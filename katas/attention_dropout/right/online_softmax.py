# style: keys in chunks; what is dropped is dropped from the mix and not from the sum
import torch


def attention_with_dropout(q, k, v, p, training, chunk=32):
    if not 0 <= p < 1:
        raise ValueError
    q = q * q.shape[-1] ** -0.5
    best = torch.full_like(q[..., :1], torch.finfo(q.dtype).min)
    total = torch.zeros_like(best)
    mixed = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    for start in range(0, k.shape[2], chunk):
        scores = q @ k[:, :, start : start + chunk].mT
        higher = torch.maximum(best, scores.max(dim=-1, keepdim=True).values).detach()
        part, shrink = (scores - higher).exp(), (best - higher).exp()
        total = total * shrink + part.sum(-1, keepdim=True)
        if training:
            part = part * (torch.rand_like(part) >= p)
        mixed = mixed * shrink + part @ v[:, :, start : start + chunk]
        best = higher
    return mixed / total / (1 - p if training else 1)
