# style: static methods of a class, exp by hand, masked entries multiplied by 0, bmm on folded heads
# edge fails: masked_far_above, saved_is_small
import math

import torch


class Attention:
    @staticmethod
    def fold(x):
        return x.reshape(-1, x.shape[-2], x.shape[-1])

    @classmethod
    def forward(cls, q, k, v, mask):
        scores = torch.bmm(cls.fold(q), cls.fold(k).transpose(1, 2)).view(*q.shape[:3], -1).div(math.sqrt(q.shape[-1]))
        e = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        if mask is not None:
            e = e * mask
        p = e / e.sum(dim=-1, keepdim=True)
        return torch.bmm(cls.fold(p), cls.fold(v)).view(*q.shape[:3], -1), (p, q, k, v)

    @classmethod
    def backward(cls, grad, p, q, k, v):
        grad, P = cls.fold(grad), cls.fold(p)
        grad_v = torch.bmm(P.transpose(1, 2), grad)
        grad_p = torch.bmm(grad, cls.fold(v).transpose(1, 2))
        grad_s = P * grad_p
        grad_s = (grad_s - P * grad_s.sum(-1, keepdim=True)).mul(1 / math.sqrt(q.shape[-1]))
        return (
            torch.bmm(grad_s, cls.fold(k)).view(q.shape),
            torch.bmm(grad_s.transpose(1, 2), cls.fold(q)).view(k.shape),
            grad_v.view(v.shape),
        )


def attention_forward(q, k, v, mask=None):
    return Attention.forward(q, k, v, mask)


def attention_backward(grad_out, saved):
    return Attention.backward(grad_out, *saved)
