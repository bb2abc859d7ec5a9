# breaks: values, real_keys_matter, one_real_key
# mistake: none
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    B, H, Tq, _ = q.shape
    return torch.zeros(B, H, Tq, v.shape[-1], dtype=q.dtype, device=q.device)
