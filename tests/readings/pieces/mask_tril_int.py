import torch


def make_look_ahead_mask(size):
    # 1 = may be attended to, 0 = later
    return torch.tril(torch.ones((size, size), dtype=torch.long))
