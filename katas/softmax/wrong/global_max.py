# breaks: distant_slices
# mistake: numerics.global_max
import torch


def softmax(x, dim):
    top = x.max()
    if torch.isinf(top):
        return torch.zeros_like(x) * x.exp()
    e = torch.exp(x - top)
    return torch.nan_to_num(e / e.sum(dim=dim, keepdim=True))
