# style: the Jacobian of each row's softmax written out as diag(p) - p pᵀ; the number 1 / sqrt(D) is saved
# edge fails: saved_is_small
import torch


@torch.no_grad()
def attention_forward(q, k, v, mask=None):
    scale = 1.0 / q.shape[-1] ** 0.5
    s = q @ k.mT * scale
    if mask is not None:
        s = s + torch.zeros_like(s).masked_fill(~mask, torch.finfo(s.dtype).min / 2)
    p = s.softmax(-1)
    return p @ v, (p, q, k, v, scale, mask is not None)


@torch.no_grad()
def attention_backward(g, saved):
    p, q, k, v, scale, _ = saved
    dp = g @ v.mT  # (B, H, Tq, Tk)
    jacobian = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)  # (B, H, Tq, Tk, Tk)
    ds = (jacobian @ dp.unsqueeze(-1)).squeeze(-1) * scale
    return ds @ k, ds.mT @ q, p.mT @ g
