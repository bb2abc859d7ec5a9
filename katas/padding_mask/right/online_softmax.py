# style: keys in chunks with a running maximum and sum, as flash attention does
import torch


def padding_mask(lengths, max_len):
    counted = torch.ones((lengths.numel(), max_len), dtype=torch.long, device=lengths.device).cumsum(1)
    return counted.le(lengths.reshape(-1, 1))


def padded_attention(q, k, v, keep, chunk=3):
    q = q * q.shape[-1] ** -0.5
    best = torch.full_like(q[..., :1], -1e30 if q.dtype in (torch.float32, torch.float64) else -6e4)
    total = torch.zeros_like(best)
    mixed = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    for start in range(0, k.shape[2], chunk):
        real = keep[:, None, None, start : start + chunk]
        scores = (q @ k[:, :, start : start + chunk].mT).masked_fill(~real, float("-inf"))
        higher = torch.maximum(best, scores.max(dim=-1, keepdim=True).values).detach()
        part = torch.exp(scores - higher)
        shrink = torch.exp(best - higher)
        total = total * shrink + part.sum(-1, keepdim=True)
        mixed = mixed * shrink + part @ v[:, :, start : start + chunk]
        best = higher
    return mixed / total.clamp(min=torch.finfo(q.dtype).tiny)
