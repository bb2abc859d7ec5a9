# style: two loops over blocks, running maximum, sum and result, divided at the end
# edge fails: future_skipped
import math

import torch


def flash_attention(q, k, v, block_q, block_k, causal=False):
    B, H, Tq, D = q.shape
    Tk = k.shape[2]
    outs, lses = [], []
    for i in range(0, Tq, block_q):
        qi = q[:, :, i : i + block_q]
        n = qi.shape[2]
        m = torch.full((B, H, n, 1), float("-inf"), dtype=q.dtype, device=q.device)
        total = torch.zeros(B, H, n, 1, dtype=q.dtype, device=q.device)
        o = torch.zeros(B, H, n, v.shape[-1], dtype=q.dtype, device=q.device)
        rows = torch.arange(i, i + n, device=q.device) + Tk - Tq
        for j in range(0, Tk, block_k):
            kj, vj = k[:, :, j : j + block_k], v[:, :, j : j + block_k]
            s = qi @ kj.transpose(-2, -1) / math.sqrt(D)
            if causal:
                cols = torch.arange(j, j + kj.shape[2], device=q.device)
                s = s.masked_fill(cols > rows[:, None], float("-inf"))
            m_new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
            alpha = torch.exp(m - m_new)
            p = torch.exp(s - m_new)
            total = total * alpha + p.sum(dim=-1, keepdim=True)
            o = o * alpha + p @ vj
            m = m_new
        outs.append(o / total)
        lses.append((m + total.log()).squeeze(-1))
    return torch.cat(outs, dim=2), torch.cat(lses, dim=2)
