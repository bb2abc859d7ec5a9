# style: in-place arithmetic on a copy of one's own, folded to two dimensions
import torch


class Folded:
    """x as rows of slices."""

    def __init__(self, x, dim):
        self.dim = dim
        self.moved = torch.movedim(x, dim, 0)
        self.rows = self.moved.reshape(self.moved.shape[0], -1)  # (N, everything else)

    def back(self, rows):
        return rows.reshape(self.moved.shape).movedim(0, self.dim)


def softmax(x, dim):
    folded = Folded(x, dim)
    scores = folded.rows.clone()
    top, _ = scores.detach().max(dim=0)
    top[top == float("-inf")] = 0
    scores -= top
    e = scores.exp()
    norm = e.sum(0)
    norm = norm + (norm == 0).to(norm.dtype)
    return folded.back(e / norm)
