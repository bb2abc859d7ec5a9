# style: a recurrent loop over tokens with one state; the values get a column of ones, so that one sum gives both
import torch


def phi(x):
    return torch.where(x > 0, x + 1, torch.exp(torch.minimum(x, torch.zeros_like(x))))


def linear_attention(q, k, v, causal=False):
    q, k = phi(q), phi(k)
    v = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
    if not causal:
        both = q @ (k.transpose(-1, -2) @ v)
    else:
        state, rows = 0, []
        for t in range(q.shape[2]):
            state = state + k[:, :, t, :, None] * v[:, :, t, None, :]
            rows.append(q[:, :, t, None, :] @ state)
        both = torch.cat(rows, dim=2)
    return both[..., :-1] / both[..., -1:]
