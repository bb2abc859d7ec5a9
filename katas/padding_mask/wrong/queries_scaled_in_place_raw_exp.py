# breaks: inputs_unmodified, gradients, large_scores
# mistake: inputs.modified + numerics.no_max
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    q /= math.sqrt(q.size(-1))
    weights = torch.exp(q @ k.transpose(-2, -1)) * keep[:, None, None, :]
    return weights / weights.sum(dim=-1, keepdim=True) @ v
