# style: forward and backward written as an autograd.Function
# edge fails: nothing_to_attend_to
import torch


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, keep):
        scale = q.shape[-1] ** -0.5
        weights = (q @ k.mT * scale).masked_fill(~keep[:, None, None], -torch.inf).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return weights @ v

    @staticmethod
    def backward(ctx, grad):
        q, k, v, weights = ctx.saved_tensors
        to_weights = grad @ v.mT
        to_scores = weights * (to_weights - (to_weights * weights).sum(-1, keepdim=True)) * ctx.scale
        return to_scores @ k, to_scores.mT @ q, weights.mT @ grad, None


def padding_mask(lengths, max_len):
    rows = torch.ones(max_len, max_len, device=lengths.device).tril().bool()  # row n - 1 has n True
    return rows[(lengths.long() - 1).clamp(min=0)] & (lengths > 0)[:, None]


def padded_attention(q, k, v, keep):
    return Attention.apply(q, k, v, keep)
