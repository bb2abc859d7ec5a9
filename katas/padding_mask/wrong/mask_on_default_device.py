# breaks: mask_device, device
# mistake: device.default
import math

import torch


def padding_mask(lengths, max_len):
    mask = torch.zeros(len(lengths), max_len, dtype=torch.bool)
    for i, n in enumerate(lengths.tolist()):
        mask[i, :n] = True
    return mask


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    bias = torch.zeros(keep.shape, dtype=q.dtype)
    bias[~keep] = float("-inf")
    return torch.softmax(scores + bias[:, None, None, :], dim=-1) @ v
