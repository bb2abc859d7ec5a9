# breaks: real_tokens_anywhere, one_real_key
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    out = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for b, n in enumerate(keep.sum(dim=1).tolist()):
        scores = q[b] @ k[b, :, :n].transpose(-2, -1) / math.sqrt(q.size(-1))
        out[b] = torch.softmax(scores, dim=-1) @ v[b, :, :n]
    return out
