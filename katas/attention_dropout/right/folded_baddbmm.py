# style: folded batch, baddbmm, torch.native_dropout
import torch


def attention_with_dropout(q, k, v, p, training):
    if not (p >= 0 and p < 1):
        raise ValueError(p)
    b, h, tq, d = q.shape
    tk = k.shape[2]
    q, k, v = q.reshape(b * h, tq, d), k.reshape(b * h, tk, d), v.reshape(b * h, tk, -1)
    weights = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2), alpha=d**-0.5).softmax(-1)
    weights, _ = torch.native_dropout(weights, p, training)
    return torch.bmm(weights, v).unflatten(0, (b, h))
