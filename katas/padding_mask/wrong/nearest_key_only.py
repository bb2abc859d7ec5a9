# breaks: values, real_keys_matter
# mistake: none
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = (q @ k.transpose(-2, -1)).masked_fill(~keep[:, None, None, :], float("-inf"))
    best = scores.argmax(dim=-1, keepdim=True).expand(-1, -1, -1, v.shape[-1])
    return v.gather(2, best)
