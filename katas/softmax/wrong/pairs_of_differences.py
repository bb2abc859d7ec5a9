# breaks: gradients_of_difficult_entries
# mistake: none
import torch


def softmax(x, dim):
    y = x.movedim(dim, -1)
    hidden = y == float("-inf")
    y = y.masked_fill(hidden, 0.0)
    apart = (y[..., None, :] - y[..., :, None]).exp().masked_fill(hidden[..., None, :], 0.0)
    s = apart.sum(-1)
    return torch.where(hidden, torch.zeros_like(s), 1 / s.masked_fill(hidden, 1.0)).movedim(-1, dim)
