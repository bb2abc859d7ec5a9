# style: a key that is always open, with score as low as can be and value 0, takes what an empty row has to give
import math

import torch
import torch.nn.functional as F


def combine_masks(keep, causal):
    return keep.view(keep.shape[0], 1, 1, keep.shape[1]) & causal.view(1, 1, *causal.shape)


def masked_attention(q, k, v, mask):
    scale = torch.tensor(math.sqrt(q.shape[-1]), dtype=q.dtype, device=q.device)
    scores = (q @ k.mT / scale).masked_fill(~mask, float("-inf"))
    lowest = torch.finfo(q.dtype).min
    weights = F.pad(scores, (0, 1), value=lowest).softmax(dim=-1)[..., :-1]
    return weights @ v
