# breaks: values
# mistake: none
import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    mean = v.cumsum(dim=2) / torch.arange(1, v.shape[2] + 1, device=v.device, dtype=v.dtype)[:, None]
    rows = torch.arange(q.shape[2], device=v.device).clamp(max=v.shape[2] - 1)
    return mean[:, :, rows] * mask.any(-1, keepdim=True)
