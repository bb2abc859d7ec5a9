# style: online softmax over chunks of the dimension, rescaled as the maximum grows
import torch

CHUNK = 4


def softmax(x, dim):
    moved = x.movedim(dim, -1)  # (..., N)
    m = torch.full_like(moved[..., :1], torch.finfo(x.dtype).min)
    total = torch.zeros_like(moved[..., :1])
    for start in range(0, moved.shape[-1], CHUNK):
        part = moved[..., start : start + CHUNK]
        new = torch.maximum(m, part.amax(-1, keepdim=True)).detach()
        total = total * (m - new).exp() + (part - new).exp().sum(-1, keepdim=True)
        m = new
    out = (moved - m).exp() / torch.where(total > 0, total, torch.ones_like(total))
    return out.movedim(-1, dim)
