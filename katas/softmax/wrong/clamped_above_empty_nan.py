# breaks: large_entries, distant_slices, empty_slices
# mistake: numerics.clamped + softmax.empty_slice
import torch


def softmax(x, dim):
    e = torch.exp(x.clamp(max=80.0))
    return e / e.sum(dim, keepdim=True)
