# breaks: values, values_with_padding, padded_keys_do_not_matter
# mistake: scale.missing + mask.lost
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    attn = q @ k.transpose(-2, -1)
    att = attn.masked_fill(~keep[:, None, None, :], float("-inf"))  # noqa: F841
    return torch.softmax(attn, dim=-1) @ v
