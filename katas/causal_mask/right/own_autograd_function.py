# style: the masked softmax as an autograd.Function with its own backward
# edge fails: large_scores
import torch


class MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, mask):
        e = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
        p = e / (e.sum(-1, keepdim=True) + 1e-12)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True)), None


def causal_mask(num_queries, num_keys, device=None):
    i, j = torch.meshgrid(
        torch.arange(num_keys - num_queries, num_keys, device=device), torch.arange(num_keys, device=device), indexing="ij"
    )
    return (i - j).ge(0)


def causal_attention(q, k, v):
    q = q * (1 / q.shape[-1] ** 0.5)
    return MaskedSoftmax.apply(q @ k.mT, causal_mask(q.shape[2], k.shape[2], q.device)) @ v
