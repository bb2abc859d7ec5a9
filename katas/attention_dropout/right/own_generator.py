# style: a generator of one's own, masked_fill; softmax in float32 and cast back
# edge fails: float64_throughout
import torch
from torch import Tensor

generator = torch.Generator().manual_seed(20)


def attention_with_dropout(q: Tensor, k: Tensor, v: Tensor, p: float, training: bool) -> Tensor:
    if p >= 1 or p < 0:
        raise ValueError("no such probability")
    weights = (q @ k.mT / q.shape[-1] ** 0.5).float().softmax(dim=-1).to(q.dtype)
    if training:
        dropped = torch.rand(weights.shape, generator=generator, device=weights.device) < p
        weights = weights.masked_fill(dropped, 0.0)
        weights = weights / (1.0 - p)
    return weights @ v
