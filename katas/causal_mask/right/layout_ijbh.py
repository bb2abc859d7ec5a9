# style: scores laid out (i, j, b, h), softmax over j by hand, the device as a context
# edge fails: large_scores
import contextlib

import torch


def causal_mask(num_queries, num_keys, device=None):
    with torch.device(device) if device is not None else contextlib.nullcontext():
        positions = torch.arange(num_keys)
    return positions <= positions[num_keys - num_queries :].unsqueeze(-1)


def causal_attention(q, k, v):
    scores = torch.einsum("bhid,bhjd->ijbh", q, k)
    scores /= q.shape[-1] ** 0.5
    seen = causal_mask(q.shape[2], k.shape[2], q.device)[:, :, None, None]
    e = torch.exp(scores) * seen
    return torch.einsum("ijbh,bhjd->bhid", e / e.sum(1, keepdim=True), v)
