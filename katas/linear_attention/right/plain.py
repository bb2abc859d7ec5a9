# style: elu + 1, sums over the keys, cumsum if causal
# edge fails: far_below_zero
import torch
import torch.nn.functional as F


def linear_attention(q, k, v, causal=False):
    q = F.elu(q) + 1
    k = F.elu(k) + 1
    if causal:
        kv = torch.einsum("bhjd,bhje->bhjde", k, v).cumsum(dim=2)
        z = k.cumsum(dim=2)
        num = torch.einsum("bhid,bhide->bhie", q, kv)
        den = torch.einsum("bhid,bhid->bhi", q, z)
    else:
        kv = torch.einsum("bhjd,bhje->bhde", k, v)
        z = k.sum(dim=2)
        num = torch.einsum("bhid,bhde->bhie", q, kv)
        den = torch.einsum("bhid,bhd->bhi", q, z)
    return num / den.unsqueeze(-1)
