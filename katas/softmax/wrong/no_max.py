# breaks: large_entries, distant_slices
# mistake: numerics.no_max
import torch


def softmax(x, dim):
    e = torch.exp(x)
    total = e.sum(dim=dim, keepdim=True)
    return torch.where(total == 0, torch.zeros_like(e), e / total)
