# style: einsum for the sums, a small number under the division
# edge fails: float64_throughout
import torch


def softmax(x, dim):
    y = x.movedim(dim, -1)
    top = y.amax(-1, keepdim=True).clamp_min(-1e30 if x.dtype not in (torch.float16,) else -6e4)
    e = torch.exp(y - top)
    s = torch.einsum("...n->...", e)[..., None]
    return (e / (s + 1e-7)).movedim(-1, dim)
