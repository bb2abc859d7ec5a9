# style: softmax in float32 and cast back, in-place arithmetic on one's own scores
# edge fails: float64_throughout
import math
from typing import Optional

import torch
from torch import Tensor


def combine_masks(keep: Tensor, causal: Tensor) -> Tensor:
    out = causal.repeat(keep.size(0), 1, 1, 1)
    out &= keep.view(keep.size(0), 1, 1, -1)
    return out


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor] = None) -> Tensor:
    hidden = mask.logical_not()
    scores = q @ k.transpose(-2, -1)
    scores /= math.sqrt(k.size(-1))
    scores = scores.float().masked_fill_(hidden, -3e38)
    weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0).to(q.dtype)
    return weights @ v
