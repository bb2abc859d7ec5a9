# breaks: values, values_with_padding
# mistake: none
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    flags = keep[:, None, :, None].to(v.dtype)
    mean = (v * flags).sum(dim=2, keepdim=True) / flags.sum(dim=2, keepdim=True)
    return mean.expand(-1, -1, q.shape[2], -1)
