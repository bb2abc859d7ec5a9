# style: a module behind the function; mask after the softmax, renormalised with 1e-9 against division by 0
# edge fails: large_scores, float64_throughout
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, q, k, v, keep):
        weights = torch.softmax(torch.matmul(q, k.transpose(2, 3)) * (1 / q.shape[-1] ** 0.5), -1)
        weights = weights * keep[:, None, None, :]
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)
        return weights @ v


attention = Attention()


def padding_mask(lengths, max_len):
    with lengths.device:
        return torch.arange(max_len)[None] < lengths[:, None]


def padded_attention(*args):
    return attention(*args)
