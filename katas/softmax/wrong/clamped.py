# breaks: large_entries, distant_slices
# mistake: numerics.clamped
import torch


def softmax(x, dim):
    empty = (x == float("-inf")).all(dim, keepdim=True)
    e = torch.exp(x.clamp(-50, 50))
    return (e / e.sum(dim, keepdim=True)).masked_fill(empty, 0.0)
