# style: the weights are saved, one line for each gradient
# edge fails: saved_is_small
import math

import torch


def attention_forward(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, (q, k, v, weights)


def attention_backward(grad_out, saved):
    q, k, v, weights = saved
    grad_v = weights.transpose(-2, -1) @ grad_out
    grad_weights = grad_out @ v.transpose(-2, -1)
    row = (grad_weights * weights).sum(dim=-1, keepdim=True)
    grad_scores = weights * (grad_weights - row) / math.sqrt(q.shape[-1])
    grad_q = grad_scores @ k
    grad_k = grad_scores.transpose(-2, -1) @ q
    return grad_q, grad_k, grad_v
