# breaks: values_with_padding, flags_belong_to_their_sample
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    B, H, Tq, D = q.shape
    scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)) / math.sqrt(D)
    flags = keep.repeat(H, 1).unsqueeze(1)  # (B * H, 1, Tk)
    weights = scores.masked_fill(~flags, -1e9).softmax(dim=-1)
    return torch.bmm(weights, v.flatten(0, 1)).view(B, H, Tq, -1)
