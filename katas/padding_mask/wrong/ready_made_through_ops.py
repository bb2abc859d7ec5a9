# breaks: from_scratch
# mistake: none
import torch

run = getattr(torch.ops.aten, "scaled_dot_" + "product_attention")


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    bias = torch.zeros_like(keep, dtype=q.dtype).masked_fill(~keep, float("-inf"))
    return run(q, k, v, bias[:, None, None, :].expand(-1, q.shape[1], q.shape[2], -1))
