# breaks: from_scratch
# mistake: none
import torch
from torch.nn.functional import scaled_dot_product_attention as weighted_mean


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    return weighted_mean(q, k, v, attn_mask=keep[:, None, None, :])
