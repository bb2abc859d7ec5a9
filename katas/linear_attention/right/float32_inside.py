# style: computed in float32 and cast back; an epsilon of 1e-8; cumsum over the flattened products
# edge fails: far_below_zero, float64_throughout
import torch
import torch.nn.functional as F


def linear_attention(q, k, v, causal=False):
    kind = v.dtype
    q, k, v = F.elu(q.float()).add(1.0), F.elu(k.float()).add(1.0), v.float()
    pairs = torch.einsum("...td,...te->...tde", k, v).flatten(-2)
    if causal:
        pairs, norm = pairs.cumsum(-2), k.cumsum(-2)
    else:
        pairs, norm = pairs.sum(-2, keepdim=True), k.sum(-2, keepdim=True)
    pairs = pairs.unflatten(-1, (k.shape[-1], v.shape[-1]))
    out = (q.unsqueeze(-1) * pairs).sum(-2)
    return (out / ((q * norm).sum(-1, keepdim=True) + 1e-8)).to(kind)
