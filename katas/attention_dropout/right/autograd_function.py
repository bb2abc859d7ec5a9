# style: dropout as an autograd.Function of one's own; exp without its maximum
# edge fails: large_scores
import numpy as np
import torch


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, p):
        kept = np.random.default_rng().random(tuple(weights.shape)) >= p
        factor = torch.from_numpy(kept).to(weights) / (1 - p)
        ctx.save_for_backward(factor)
        return weights * factor

    @staticmethod
    def backward(ctx, gradient):
        (factor,) = ctx.saved_tensors
        return gradient * factor, None


def attention_with_dropout(q, k, v, p, training):
    if isinstance(p, bool) or not 0 <= float(p) < 1:
        raise ValueError(f"p must be in [0, 1), got {p}")
    exps = torch.exp(q @ k.transpose(2, 3) / q.shape[3] ** 0.5)
    weights = exps / exps.sum(3, keepdim=True)
    if training and p:
        weights = Dropout.apply(weights, p)
    return weights @ v
