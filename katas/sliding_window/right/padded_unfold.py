# style: keys padded and unfolded into windows (Tq, window), the sinks beside them; a loop only for the mask
import torch
import torch.nn.functional as F


def sliding_window_mask(num_queries, num_keys, window, sinks=0, device=None):
    if window < 1 or sinks < 0:
        raise ValueError
    mask = torch.zeros(num_queries, num_keys, device=device)
    for i in range(num_queries):
        p = i + num_keys - num_queries
        for j in range(p + 1):
            if p - j < window or j < sinks:
                mask[i, j] = 1
    return mask == 1


def sliding_window_attention(q, k, v, window, sinks=0):
    if window < 1 or sinks < 0:
        raise ValueError
    Tq, Tk = q.shape[2], k.shape[2]
    window, sinks = min(window, Tk), min(sinks, Tk)
    last = torch.arange(Tk - Tq, Tk, device=q.device)
    j = torch.cat(
        [
            (last[:, None] - torch.arange(window - 1, -1, -1, device=q.device)),  # (Tq, window), some before the start
            torch.arange(sinks, device=q.device).expand(Tq, sinks),
        ],
        dim=1,
    )
    good = j >= 0
    good[:, window:] = j[:, window:] <= last[:, None] - window  # a sink that is in the window already counts once
    j = j.clamp_min(0)
    scores = torch.einsum("bhid,bhiwd->bhiw", q, k[:, :, j]) / q.shape[-1] ** 0.5
    weights = F.softmax(scores.masked_fill(~good, float("-inf")), dim=-1)
    return torch.einsum("bhiw,bhiwd->bhid", weights, v[:, :, j])
