# style: keys in chunks with a running maximum and sum, as flash attention does
import torch


def combine_masks(keep, causal):
    return ~(~keep[:, None, None] | ~causal)


def masked_attention(q, k, v, mask, chunk=3):
    q = q * q.shape[-1] ** -0.5
    mask = mask.expand(*q.shape[:-1], k.shape[2])
    best = torch.full_like(q[..., :1], torch.finfo(q.dtype).min)
    total = torch.zeros_like(best)
    mixed = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    for start in range(0, k.shape[2], chunk):
        seen = mask[..., start : start + chunk]
        scores = (q @ k[:, :, start : start + chunk].mT).masked_fill(~seen, float("-inf"))
        higher = torch.maximum(best, scores.max(dim=-1, keepdim=True).values).detach()
        part = torch.exp(scores - higher)
        shrink = torch.exp(best - higher)
        total = total * shrink + part.sum(-1, keepdim=True)
        mixed = mixed * shrink + part @ v[:, :, start : start + chunk]
        best = higher
    return mixed / total.masked_fill(total == 0, 1.0)
