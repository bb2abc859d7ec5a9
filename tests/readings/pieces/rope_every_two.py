import torch


def rotate_every_two(x):
    first, second = x[:, :, :, ::2], x[:, :, :, 1::2]
    return torch.stack((-second, first), dim=-1).flatten(-2)


def sinusoidal_table(positions, dim):
    rates = 10000 ** (-torch.arange(0, dim, 2).double() / dim)
    return positions.double().unsqueeze(-1) * rates


def rotary(x, position_ids):
    """x: (batch, heads, seq, head_dim); position_ids: (batch, seq)"""
    angles = sinusoidal_table(position_ids, x.shape[-1]).repeat_interleave(2, dim=-1)
    cos = torch.cos(angles)[:, None].to(x.dtype)
    sin = torch.sin(angles)[:, None].to(x.dtype)
    return x * cos + rotate_every_two(x) * sin
