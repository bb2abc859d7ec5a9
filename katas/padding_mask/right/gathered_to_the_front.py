# style: real keys gathered to the front, cut to the longest sample, then a mask by their count
# edge fails: nothing_to_attend_to
import torch


def padding_mask(lengths, max_len):
    positions = torch.arange(max_len, device=lengths.device).expand(lengths.shape[0], max_len)
    return positions.lt(lengths.view(-1, 1).expand_as(positions))


def padded_attention(q, k, v, keep):
    order = keep.int().argsort(dim=1, descending=True, stable=True)[:, None, :, None]
    k = k.gather(2, order.expand(-1, k.size(1), -1, k.size(3)))
    v = v.gather(2, order.expand(-1, v.size(1), -1, v.size(3)))
    count = keep.sum(dim=1)
    longest = max(1, int(count.max()))
    front = torch.arange(longest, device=keep.device) < count[:, None]  # (B, longest)
    scores = (q / q.size(3) ** 0.5) @ k[:, :, :longest].mT
    scores = scores.masked_fill(~front[:, None, None], torch.finfo(scores.dtype).min)
    return scores.softmax(dim=3) @ v[:, :, :longest]
