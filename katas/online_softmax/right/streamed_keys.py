# style: one key after another with a running maximum, as the online softmax was published; exp2 and log2 inside
# edge fails: gradients_of_empty_parts
import math

import torch

LOG2E = math.log2(math.e)


def partial_attention(q, k, v, mask=None):
    lead = q.shape[:-1]
    m = torch.full(lead, -torch.inf, dtype=q.dtype, device=q.device)
    d = torch.zeros(lead, dtype=q.dtype, device=q.device)
    o = torch.zeros(*lead, v.shape[-1], dtype=q.dtype, device=q.device)
    if mask is not None:
        mask = mask.expand(*lead, k.shape[-2])
    for j in range(k.shape[-2]):
        s = (q * k[..., j : j + 1, :]).sum(-1) * (LOG2E / math.sqrt(q.shape[-1]))
        if mask is not None:
            s = torch.where(mask[..., j], s, -torch.inf)
        new = torch.maximum(m, s)
        safe = torch.where(new == -torch.inf, torch.zeros_like(new), new)
        old, now = torch.exp2(m - safe), torch.exp2(s - safe)
        d = d * old + now
        o = o * old[..., None] + now[..., None] * v[..., j : j + 1, :]
        m = new
    empty = d == 0
    return o / torch.where(empty, torch.ones_like(d), d)[..., None], (m + torch.log2(d)) / LOG2E


def merge_partials(out_a, lse_a, out_b, lse_b):
    a, b = lse_a * LOG2E, lse_b * LOG2E
    top = torch.clamp(torch.maximum(a, b), min=torch.finfo(a.dtype).min)
    wa, wb = torch.exp2(a - top), torch.exp2(b - top)
    d = wa + wb
    out = (wa[..., None] * out_a + wb[..., None] * out_b) / torch.where(d == 0, torch.ones_like(d), d)[..., None]
    return out, (top + torch.log2(d)) / LOG2E
