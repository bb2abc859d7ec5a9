# style: chunks of tokens: a masked product within the chunk, a state for what came before
# edge fails: far_below_zero
import torch
import torch.nn.functional as F

CHUNK = 16


def linear_attention(q, k, v, causal=False):
    q, k = 1 + F.elu(q), 1 + F.elu(k)
    if not causal:
        return torch.matmul(q, torch.matmul(k.mT, v)) / torch.matmul(q, k.sum(2).unsqueeze(-1))
    B, H, T, D = q.shape
    state = q.new_zeros(B, H, D, v.shape[-1])
    total = q.new_zeros(B, H, D, 1)
    out = []
    for start in range(0, T, CHUNK):
        qc, kc, vc = (part[:, :, start : start + CHUNK] for part in (q, k, v))
        inside = (qc @ kc.mT).tril()
        out.append((inside @ vc + qc @ state) / (inside.sum(-1, keepdim=True) + qc @ total))
        state = state + kc.mT @ vc
        total = total + kc.sum(2).unsqueeze(-1)
    return torch.cat(out, 2)
