# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import math

import torch


def scaled_dot_product_attention(q, k, v):
    qf = q.view(-1, *q.shape[-2:])
    kf = k.view(-1, *k.shape[-2:])
    vf = v.view(-1, *v.shape[-2:])
    weights = torch.softmax(torch.bmm(qf, kf.transpose(1, 2)) / math.sqrt(q.shape[-1]), dim=-1)
    return torch.bmm(weights, vf).view(*q.shape[:-1], v.shape[-1])
