# style: einsum with the heads behind the keys, -1e9 instead of -inf, a lower triangle as a table of masks
# edge fails: nothing_to_attend_to, half_precision
import torch


def padding_mask(lengths, max_len):
    table = torch.ones(max_len + 1, max_len, dtype=torch.bool, device=lengths.device).tril(-1)
    return table[lengths.long()]


def padded_attention(q, k, v, keep):
    scores = torch.einsum("bhid,bhjd->ijbh", q * q.shape[-1] ** -0.5, k)
    scores = scores.masked_fill(~keep.t()[None, :, :, None], -1e9)
    weights = scores.softmax(dim=1)  # over j
    return torch.einsum("ijbh,bhjd->bhid", weights, v)
