# style: torch.logsumexp and torch.logaddexp, NaN replaced afterwards
# edge fails: gradients_of_empty_parts
import torch


def partial_attention(q, k, v, mask=None):
    s = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    if mask is not None:
        s = torch.where(mask, s, -torch.inf)
    lse = s.logsumexp(-1)
    w = (s - lse[..., None]).exp().nan_to_num(0.0)
    return torch.einsum("...ij,...jd->...id", w, v), lse


def merge_partials(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    a, b = ((one - lse).exp().nan_to_num(0.0)[..., None] for one in (lse_a, lse_b))
    return [a * out_a + b * out_b, lse]
