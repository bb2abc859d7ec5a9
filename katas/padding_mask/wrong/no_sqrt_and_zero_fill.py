# breaks: values, padded_keys_do_not_matter, one_real_key
# mistake: scale.no_sqrt + mask.zero_fill
import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1]
    scores = torch.where(keep[:, None, None, :], scores, torch.zeros_like(scores))
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)
