# breaks: float32
# mistake: none
import torch


def softmax(x, dim):
    y = x.movedim(dim, -1)
    m = y.amax(-1, keepdim=True)
    e = (y - m.masked_fill(m == float("-inf"), 0)).exp()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        s = e @ torch.ones_like(e[..., :1]).new_ones(e.shape[-1], 1)
    return (e / s.masked_fill(s == 0, 1)).movedim(-1, dim)
