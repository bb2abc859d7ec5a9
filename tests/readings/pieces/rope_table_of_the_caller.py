"""A rotation whose table comes from the model: (seq, head_dim / 2, 2), cosine and sine; x is (batch, seq, heads, head_dim)."""

import torch


def rotate_by_cache(x, rope_cache):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    cache = rope_cache[: x.size(1)].view(1, x.size(1), 1, pairs.size(3), 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    first = even * cache[..., 0] - odd * cache[..., 1]
    second = odd * cache[..., 0] + even * cache[..., 1]
    return torch.stack((first, second), -1).flatten(3).type_as(x)
