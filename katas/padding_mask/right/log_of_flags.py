# style: log(keep) added to the scores, softmax by logsumexp, scale as a tensor, mask scattered from a difference
# edge fails: nothing_to_attend_to
import torch


def padding_mask(lengths, max_len):
    ends = lengths.new_zeros(lengths.size(0), max_len + 1, dtype=torch.int64)
    ends.scatter_(1, lengths.to(torch.int64).unsqueeze(1), 1)  # 1 where padding starts
    return ends.cumsum(1)[:, :-1] == 0


def padded_attention(q, k, v, keep):
    scale = torch.tensor(float(q.shape[-1]), device=q.device, dtype=q.dtype).rsqrt()
    scores = torch.einsum("...id,...jd->...ij", q, k).mul(scale)
    scores = scores + keep.to(scores.dtype).log()[:, None, None]
    return torch.einsum("...ij,...jd->...id", (scores - scores.logsumexp(-1, keepdim=True)).exp(), v)
