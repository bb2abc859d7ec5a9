# NumPy computes forward and backward, in an autograd function of its own.
# outcome: passed
import numpy as np
import torch


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        a, b, c = (part.detach().cpu().double().numpy() for part in (q, k, v))
        weights = softmax(a @ b.swapaxes(-2, -1) / np.sqrt(a.shape[-1]))
        ctx.numbers = a, b, c, weights
        return torch.from_numpy(weights @ c).to(q)

    @staticmethod
    def backward(ctx, given):
        a, b, c, weights = ctx.numbers
        d = given.detach().cpu().double().numpy()
        to_weights = d @ c.swapaxes(-2, -1)
        to_scores = weights * (to_weights - (to_weights * weights).sum(-1, keepdims=True)) / np.sqrt(a.shape[-1])
        found = to_scores @ b, to_scores.swapaxes(-2, -1) @ a, weights.swapaxes(-2, -1) @ d
        return tuple(torch.from_numpy(part).to(given) for part in found)


def scaled_dot_product_attention(q, k, v):
    return Attention.apply(q, k, v)
