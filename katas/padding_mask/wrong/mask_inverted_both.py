# breaks: mask_marks_real_tokens, mask_of_empty_and_full, values_with_padding, padded_keys_do_not_matter, real_keys_matter
# mistake: mask.inverted
import math

import torch


def padding_mask(lengths, max_len):
    # True = padding, as in key_padding_mask of nn.MultiheadAttention
    return torch.arange(max_len, device=lengths.device)[None, :] >= lengths[:, None]


def padded_attention(q, k, v, key_padding_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(key_padding_mask[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
