# style: masked weights multiplied by 0, the maximum over the kept scores, autograd.Function-free and without any where
# edge fails: gradients_of_empty_parts
import torch


def partial_attention(q, k, v, mask=None):
    scale = torch.rsqrt(torch.tensor(q.size(-1), dtype=q.dtype, device=q.device))
    scores = (q * scale) @ k.swapaxes(-1, -2)
    keep = torch.ones_like(scores) if mask is None else mask.to(scores.dtype).expand_as(scores)
    lowest = torch.finfo(scores.dtype).min
    top = scores.masked_fill(keep == 0, lowest).max(dim=-1).values.detach()
    top = top * (keep.sum(-1) > 0)  # 0 where nothing is kept
    counts = ((scores - top[..., None]) * keep).exp() * keep
    sums = counts.sum(-1)
    return counts @ v / (sums + (sums == 0))[..., None], top + sums.log()


def merge_partials(out_a, lse_a, out_b, lse_b):
    top = torch.stack((lse_a, lse_b)).amax(0).detach().clamp(min=torch.finfo(lse_a.dtype).min / 2)
    a, b = (lse_a - top).exp(), (lse_b - top).exp()
    sums = a + b
    safe = (sums + (sums == 0))[..., None]
    return a[..., None] / safe * out_a + b[..., None] / safe * out_b, top + sums.log()
