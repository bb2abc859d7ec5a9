# style: batch and heads folded into one dimension, the mask as an additive bias in baddbmm
# edge fails: nothing_to_attend_to
import math

import torch


def padding_mask(lengths, max_len):
    mask = torch.zeros(lengths.shape[0], max_len, dtype=torch.bool, device=lengths.device)
    for row, length in zip(mask, lengths):
        row[:length] = True
    return mask


def padded_attention(q, k, v, keep):
    b, h, tq, d = q.shape
    tk, dv = k.shape[2], v.shape[3]
    q, k, v = q.reshape(b * h, tq, d), k.reshape(b * h, tk, d), v.reshape(b * h, tk, dv)
    bias = torch.zeros(b, tk, dtype=q.dtype, device=q.device)
    bias = bias.masked_fill(keep.logical_not(), torch.finfo(q.dtype).min)
    bias = bias.repeat_interleave(h, dim=0).unsqueeze(1).expand(-1, tq, -1)  # (b*h, tq, tk)
    weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=1 / math.sqrt(d)).softmax(-1)
    return torch.bmm(weights, v).view(b, h, tq, dv)
