# style: leading dimensions folded into one, baddbmm with the scale in alpha
import torch
from torch import Tensor


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    lead = q.shape[:-2]
    Tq, D = q.shape[-2:]
    Tk, Dv = v.shape[-2:]
    q = q.reshape(-1, Tq, D)
    k = k.reshape(-1, Tk, D)
    v = v.reshape(-1, Tk, Dv)
    empty = torch.empty(q.size(0), Tq, Tk, dtype=q.dtype, device=q.device)
    scores = torch.baddbmm(empty, q, k.mT, beta=0, alpha=1.0 / D**0.5)
    return torch.bmm(scores.softmax(-1), v).reshape(*lead, Tq, Dv)
