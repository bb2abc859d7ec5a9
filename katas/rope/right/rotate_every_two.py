# style: as GPT-J: x * cos + rotate_every_two(x) * sin, with doubled angles in float64
import torch


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def apply_rope(x, positions, base=10000.0):
    d = x.size(-1)
    if d & 1:
        raise ValueError(d)
    inv_freq = torch.pow(torch.tensor(base, dtype=torch.float64, device=x.device), -torch.arange(0, d, 2, device=x.device) / d)
    inv_freq = torch.tensor([base ** (-i / d) for i in range(0, d, 2)], dtype=torch.float64, device=x.device)
    angles = torch.einsum("...t,f->...tf", positions.double(), inv_freq).repeat_interleave(2, dim=-1)
    while angles.dim() < x.dim() and angles.dim() > 2:
        angles = angles.unsqueeze(1)
    return x * angles.cos().to(x.dtype) + rotate_every_two(x) * angles.sin().to(x.dtype)


def rope_attention(q, k, v, positions):
    D = q.size(-1)
    if D % 2 == 1:
        raise ValueError(D)
    scale = D**-0.25
    q, k = (apply_rope(part * scale, positions) for part in (q, k))
    return torch.einsum("bhij,bhjd->bhid", torch.einsum("bhid,bhjd->bhij", q, k).softmax(-1), v)
