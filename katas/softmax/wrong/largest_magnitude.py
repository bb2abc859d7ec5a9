# breaks: distant_slices
# mistake: none
import torch


def softmax(x, dim):
    finite = x.masked_fill(x == float("-inf"), 0)
    e = torch.exp(x - finite.abs().amax(dim, keepdim=True))
    return torch.nan_to_num(e / e.sum(dim=dim, keepdim=True))
