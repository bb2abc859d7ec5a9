# breaks: values
# mistake: mask.zero_times_inf
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    bias = (1 - keep.to(scores.dtype)) * float("-inf")
    scores = scores + bias[:, None, None, :]
    return torch.softmax(scores, dim=-1) @ v
