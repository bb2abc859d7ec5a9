# breaks: split_columns, split_values, round_trip
# mistake: split.interleaved
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return torch.stack([x[..., h::num_heads] for h in range(num_heads)], dim=1)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
