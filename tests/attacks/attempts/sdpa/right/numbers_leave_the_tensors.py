# Right values and gradients by way of Python's numbers, in an autograd function of its own.
# outcome: passed
import torch


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        weights = torch.tensor(scores.softmax(-1).tolist(), dtype=q.dtype, device=q.device)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, given):
        q, k, v, weights = ctx.saved_tensors
        to_weights = given @ v.transpose(-2, -1)
        to_scores = weights * (to_weights - (to_weights * weights).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
        return to_scores @ k, to_scores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ given


scaled_dot_product_attention = Attention.apply
