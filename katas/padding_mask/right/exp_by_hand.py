# style: the softmax by hand and without its maximum, weights of padding multiplied away before the sum
# edge fails: nothing_to_attend_to, large_scores
import torch
from torch import Tensor


def padding_mask(lengths: Tensor, max_len: int) -> Tensor:
    lengths = lengths.contiguous()
    return torch.vmap(lambda n: torch.arange(max_len, device=lengths.device) < n)(lengths)


def padded_attention(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    B, H, Tq, D = q.shape
    flags = keep.reshape(B, 1, 1, -1).expand(B, H, Tq, k.shape[2]).to(q.dtype)
    unnormalised = torch.exp((q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) * (1.0 / D**0.5)) * flags
    return (unnormalised @ v) / unnormalised.sum(-1).unsqueeze(-1)
