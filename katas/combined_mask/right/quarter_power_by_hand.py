# style: D ** -0.25 on both sides, the softmax by hand in a helper class, a decorator
import functools

import torch


def checked(function):
    @functools.wraps(function)
    def inner(*args):
        if args[-1].dtype is not torch.bool:
            raise TypeError("the mask must be bool")
        return function(*args)

    return inner


class Weights:
    def __init__(self, scores, mask):
        largest = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True).detach()
        self.exps = torch.where(mask, scores - largest, -torch.inf).exp()

    def of(self, v):
        total = self.exps.sum(-1, keepdim=True)
        return (self.exps / torch.where(total > 0, total, torch.ones_like(total))) @ v


@checked
def combine_masks(keep, causal):
    return torch.einsum("bk,qk->bqk", keep.float(), causal.float()).gt(0.5)[:, None]


@checked
def masked_attention(q, k, v, mask):
    scale = q.shape[-1] ** -0.25
    return Weights((q * scale) @ (k * scale).transpose(-2, -1), mask).of(v)
