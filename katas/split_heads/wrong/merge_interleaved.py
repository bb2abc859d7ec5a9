# breaks: merge_columns, merge_values, round_trip
# mistake: merge.interleaved
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    return torch.stack(x.unbind(1), dim=-1).flatten(2)
