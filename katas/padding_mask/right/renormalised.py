# style: mask after the softmax, then divide by what is left
# edge fails: nothing_to_attend_to, large_scores
import torch
from torch.nn.utils.rnn import pad_sequence


def padding_mask(lengths, max_len):
    ones = [torch.ones(int(n), dtype=torch.bool, device=lengths.device) for n in lengths]
    ones.append(torch.ones(max_len, dtype=torch.bool, device=lengths.device))  # so that it is as wide as max_len
    return pad_sequence(ones, batch_first=True)[:-1]


def padded_attention(q, k, v, keep):
    weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[3] ** 0.5, dim=3)
    weights = weights * keep.unsqueeze(1).unsqueeze(1)
    weights = weights / weights.sum(dim=3, keepdim=True)
    return weights @ v
