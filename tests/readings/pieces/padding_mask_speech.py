import torch


def make_pad_mask(lengths, maxlen=None):
    """Mask for padded parts, (B, maxlen): True at padding."""
    if maxlen is None:
        maxlen = int(lengths.max())
    seq_range = torch.arange(0, maxlen, dtype=torch.int64, device=lengths.device)
    return seq_range.unsqueeze(0).expand(lengths.size(0), maxlen) >= lengths.unsqueeze(-1)


def attend_without_padding(query, key, value, pad_mask):
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    scores = scores.masked_fill(pad_mask.unsqueeze(1).unsqueeze(2), float("-inf"))
    return torch.matmul(scores.softmax(-1), value)
