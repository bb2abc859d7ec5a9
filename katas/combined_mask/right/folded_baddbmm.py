# style: batch and heads folded, the mask as an additive bias in baddbmm, empty rows multiplied away at the end
import math

import torch


def combine_masks(keep, causal):
    return torch.minimum(keep[:, None, None, :].byte(), causal[None, None].byte()) != 0


def masked_attention(q, k, v, mask):
    b, h, tq, d = q.shape
    tk, dv = k.shape[2], v.shape[3]
    mask = mask.expand(b, h, tq, tk).reshape(b * h, tq, tk)
    q, k, v = q.reshape(b * h, tq, d), k.reshape(b * h, tk, d), v.reshape(b * h, tk, dv)
    bias = torch.zeros(b * h, tq, tk, dtype=q.dtype, device=q.device).masked_fill(~mask, torch.finfo(q.dtype).min / 2)
    weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=1 / math.sqrt(d)).softmax(-1)
    out = torch.bmm(weights, v) * mask.any(-1, keepdim=True)
    return out.view(b, h, tq, dv)
