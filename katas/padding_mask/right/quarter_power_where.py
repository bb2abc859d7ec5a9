# style: D ** -0.25 on both sides, torch.where, helper class and decorator, NaN of empty rows repaired on both sides
import functools

import torch


def checked(function):
    @functools.wraps(function)
    def inner(q, k, v, keep):
        if keep.dtype is not torch.bool or keep.shape != (k.shape[0], k.shape[2]):
            raise TypeError("keep must be bool (B, Tk)")
        return function(q, k, v, keep)

    return inner


class Softmax:
    def __init__(self, keep):
        self.keep = keep[:, None, None, :]
        self.any = self.keep.any(dim=-1, keepdim=True)

    def __call__(self, scores):
        low = scores.new_tensor(float("-inf"))
        scores = torch.where(self.keep | ~self.any, scores, low)
        return torch.where(self.any, torch.softmax(scores, -1), torch.zeros_like(scores))


def padding_mask(lengths, max_len):
    return lengths[:, None].expand(-1, max_len) > torch.arange(max_len).to(lengths.device)


@checked
def padded_attention(q, k, v, keep):
    scale = q.shape[-1] ** -0.25
    return Softmax(keep)((q * scale) @ (k * scale).transpose(-2, -1)) @ v
