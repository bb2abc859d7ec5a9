# breaks: output_shape, flags_belong_to_their_sample
# mistake: mask.broadcast
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep.unsqueeze(1), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
