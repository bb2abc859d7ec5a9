# breaks: large_entries, distant_slices
# mistake: numerics.no_max
import torch


def softmax(x, dim):
    e = torch.exp(x)
    return torch.nan_to_num(e / e.sum(dim=dim, keepdim=True), nan=0.0)
