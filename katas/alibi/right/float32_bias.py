# style: slopes in float32, einsum, the dtype's minimum
# edge fails: float64_throughout
import torch
import torch.nn.functional as F


def alibi_slopes(n):
    p = 1
    while p * 2 <= n:
        p *= 2
    base = torch.pow(torch.tensor(2.0), -8.0 / p * torch.arange(1, p + 1))
    extra = torch.pow(torch.tensor(2.0), -4.0 / p * (2 * torch.arange(n - p) + 1))
    return torch.cat((base, extra))


def alibi_attention(query, key, value):
    Tq, Tk = query.size(2), key.size(2)
    back = torch.arange(Tk - Tq, Tk, device=query.device).view(-1, 1) - torch.arange(Tk, device=query.device).view(1, -1)
    bias = -torch.einsum("h,ij->hij", alibi_slopes(query.size(1)).to(query.device), back.float())
    logits = torch.einsum("bhid,bhjd->bhij", query * query.size(-1) ** -0.5, key) + bias.to(query.dtype)
    logits = torch.where(back >= 0, logits, torch.finfo(logits.dtype).min)
    return torch.einsum("bhij,bhjd->bhid", F.softmax(logits, -1), value)
