# style: q / sqrt(D) is saved, and its gradient is scaled at the end; a namedtuple; out saved for the row sum
# edge fails: half_precision, saved_is_small
from typing import NamedTuple

import torch
from torch import Tensor


class Saved(NamedTuple):
    scaled: Tensor
    k: Tensor
    v: Tensor
    weights: Tensor
    out: Tensor


def attention_forward(q, k, v, mask=None):
    scaled = q / q.shape[-1] ** 0.5
    scores = scaled @ k.transpose(2, 3)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -1e9)
    weights = scores.softmax(dim=3)
    out = torch.matmul(weights, v)
    return out, Saved(scaled, k, v, weights, out)


def attention_backward(grad_out, saved):
    row = (grad_out * saved.out).sum(3, keepdim=True)
    grad_scores = torch.matmul(grad_out, saved.v.transpose(2, 3)).sub(row).mul(saved.weights)
    grad_q = torch.matmul(grad_scores, saved.k) / saved.k.shape[-1] ** 0.5
    grad_k = torch.matmul(grad_scores.transpose(2, 3), saved.scaled)
    return grad_q, grad_k, torch.matmul(saved.weights.transpose(2, 3), grad_out)
