# style: lengths padded to whole blocks and unfolded into block dimensions; padded keys hidden; exp2 inside
# edge fails: future_skipped
import math

import torch
import torch.nn.functional as F


def flash_attention(q, k, v, block_q, block_k, causal=False):
    Tq, Tk = q.shape[2], k.shape[2]
    q = F.pad(q, (0, 0, 0, -Tq % block_q)).unflatten(2, (-1, block_q))
    k = F.pad(k, (0, 0, 0, -Tk % block_k)).unflatten(2, (-1, block_k))
    v = F.pad(v, (0, 0, 0, -Tk % block_k)).unflatten(2, (-1, block_k))
    factor = math.log2(math.e) / math.sqrt(q.shape[-1])
    low = torch.finfo(q.dtype).min / 4
    outs, lses = [], []
    for i in range(q.shape[2]):
        row = i * block_q + torch.arange(block_q, device=q.device)[:, None]
        m = torch.full((*q.shape[:2], block_q), low, dtype=q.dtype, device=q.device)
        d = torch.zeros_like(m)
        acc = torch.zeros(*q.shape[:2], block_q, v.shape[-1], dtype=q.dtype, device=q.device)
        for j in range(k.shape[2]):
            column = j * block_k + torch.arange(block_k, device=q.device)
            seen = column < Tk
            if causal:
                seen = seen & (column <= row + Tk - Tq)
            s = (q[:, :, i] @ k[:, :, j].mT * factor).masked_fill(~seen, -torch.inf)
            new = torch.maximum(m, s.amax(-1))
            p = torch.exp2(s - new[..., None])
            scale = torch.exp2(m - new)
            d, acc, m = d * scale + p.sum(-1), acc * scale[..., None] + p @ v[:, :, j], new
        d = d.clamp(min=torch.finfo(d.dtype).tiny)  # padded queries may see nothing
        outs.append(acc / d[..., None])
        lses.append((m + d.log2()) / math.log2(math.e))
    return torch.cat(outs, 2)[:, :, :Tq], torch.cat(lses, 2)[:, :, :Tq]
