# breaks: large_entries, distant_slices, empty_slices
# mistake: numerics.no_max + softmax.empty_slice
import torch


def softmax(x, dim):
    e = torch.exp(x)
    return e / e.sum(dim=dim, keepdim=True)
