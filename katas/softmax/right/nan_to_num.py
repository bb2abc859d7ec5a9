# style: one line, NaN turned into 0 at the end
# edge fails: gradient_of_empty_slices
import torch


def softmax(x, dim):
    return torch.nan_to_num((x - x.logsumexp(dim, keepdim=True)).exp(), nan=0.0)
