# style: a loop over queries; only the keys that a query sees are ever scored, and the mask is made of the same slices
import torch


def seen(position, window, sinks):
    start = max(0, position - window + 1)
    return list(range(min(sinks, start))) + list(range(start, position + 1))


def check(window, sinks):
    if window < 1 or sinks < 0:
        raise ValueError("window must be at least 1, sinks at least 0")


def sliding_window_mask(num_queries, num_keys, window, sinks=0, device=None):
    check(window, sinks)
    mask = torch.zeros(num_queries, num_keys, dtype=torch.bool, device=device)
    for row in range(num_queries):
        mask[row, seen(row + num_keys - num_queries, window, sinks)] = True
    return mask


def sliding_window_attention(q, k, v, window, sinks=0):
    check(window, sinks)
    out = []
    for row in range(q.shape[2]):
        keys = seen(row + k.shape[2] - q.shape[2], window, sinks)
        score = (k[:, :, keys] * q[:, :, row, None]).sum(-1) / q.shape[-1] ** 0.5
        out.append((score.softmax(-1)[..., None] * v[:, :, keys]).sum(2))
    return torch.stack(out, dim=2)
