# style: scores laid out (B, H, Tk, Tq), the softmax over dim 2; a single key answered without a softmax
# edge fails: nothing_to_attend_to, own_memory
import math

import torch


def padding_mask(lengths, max_len):
    return ~torch.ge(torch.arange(0, max_len, 1, device=lengths.device, dtype=lengths.dtype), lengths[..., None])


def padded_attention(q, k, v, keep):
    if k.shape[2] == 1:  # its weight is 1, whatever its score
        return v.expand(-1, -1, q.shape[2], -1)
    scores = k @ q.mT
    scores /= math.sqrt(q.shape[-1])
    scores.masked_fill_(~keep[:, None, :, None], torch.finfo(q.dtype).min)
    return scores.softmax(dim=2).mT @ v
