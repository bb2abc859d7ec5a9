# style: columns permuted to halves, turned there, and permuted back; a cached table that grows
# edge fails: float64_throughout
import torch

TABLES = {}


def table(length, dim, base, device):
    key = (dim, float(base), str(device))
    if key not in TABLES or TABLES[key].shape[0] < length:
        inv = 1.0 / base ** (torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim)
        TABLES[key] = torch.arange(length, dtype=torch.float32, device=device)[:, None] * inv[None]
    return TABLES[key]


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rope(x, positions, base=10000.0):
    dim = x.shape[-1]
    if dim % 2:
        raise ValueError(f"rope needs an even size, got {dim}")
    angles = table(int(positions.max()) + 1, dim, base, x.device)[positions.long()]
    angles = torch.cat((angles, angles), dim=-1)
    angles = angles[:, None] if positions.dim() == 2 else angles[None, None]
    order = torch.cat((torch.arange(0, dim, 2), torch.arange(1, dim, 2))).to(x.device)
    halves = x[..., order]
    turned = halves * angles.cos().to(x.dtype) + rotate_half(halves) * angles.sin().to(x.dtype)
    return turned[..., order.argsort()]


def rope_attention(q, k, v, positions):
    q, k = apply_rope(torch.stack([q, k]).flatten(0, 1), positions.repeat(2, 1) if positions.dim() == 2 else positions).chunk(2)
    logits = torch.matmul(q, k.transpose(-1, -2)).div(q.shape[-1] ** 0.5)
    return torch.softmax(logits, dim=-1).matmul(v)
