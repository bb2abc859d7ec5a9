# style: exp by hand, multiplied by the mask, then divided by the sum; the mask from a difference of positions
# edge fails: large_scores
import torch


def sliding_window_mask(num_queries, num_keys, window, sinks=0, device=None):
    if window <= 0:
        raise ValueError(window)
    if sinks <= -1:
        raise ValueError(sinks)
    j = torch.arange(num_keys, device=device)
    age = j[num_keys - num_queries :].unsqueeze(1) - j
    return (age >= 0) * ((age < window) + (j < sinks))


def sliding_window_attention(q, k, v, window, sinks=0):
    keep = sliding_window_mask(q.shape[-2], k.shape[-2], window, sinks, q.device).to(q.dtype)
    s = (q / q.shape[-1] ** 0.25) @ (k / q.shape[-1] ** 0.25).mT
    e = torch.exp(s - s.amax(-1, keepdim=True)) * keep
    return (e / e.sum(-1, keepdim=True)) @ v
