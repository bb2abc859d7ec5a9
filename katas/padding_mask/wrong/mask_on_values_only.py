# breaks: values_with_padding, weights_sum_to_one, padded_keys_do_not_matter
# mistake: mask.after_softmax
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    v = v * keep[:, None, :, None].to(v.dtype)  # padding adds nothing to the sum
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return torch.softmax(scores, dim=-1) @ v
