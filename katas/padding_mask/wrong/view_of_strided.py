# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    B, H, Tq, D = q.shape
    Tk = k.shape[2]
    q, k, v = q.view(B * H, Tq, D), k.view(B * H, Tk, D), v.view(B * H, Tk, -1)
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(D)
    scores = scores.view(B, H, Tq, Tk).masked_fill(~keep[:, None, None, :], -1e9)
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights.view(B * H, Tq, Tk), v).view(B, H, Tq, -1)
