# breaks: values, padded_keys_do_not_matter
# mistake: none
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    count = torch.arange(1, v.shape[2] + 1, device=v.device, dtype=v.dtype)[:, None]
    mean = v.cumsum(dim=2) / count
    rows = torch.arange(q.shape[2], device=v.device).clamp(max=v.shape[2] - 1)
    return mean[:, :, rows]
