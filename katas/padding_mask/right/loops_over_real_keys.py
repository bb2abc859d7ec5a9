# style: explicit loops; padded keys are left out instead of masked
import torch


def padding_mask(lengths, max_len):
    rows = []
    for length in lengths.tolist():
        rows.append([True] * length + [False] * (max_len - length))
    return torch.tensor(rows, dtype=torch.bool, device=lengths.device)


def padded_attention(q, k, v, keep):
    samples = []
    for b in range(q.shape[0]):
        heads = []
        for h in range(q.shape[1]):
            keys, values = k[b, h][keep[b]], v[b, h][keep[b]]  # (real, D), (real, Dv)
            scores = q[b, h] @ keys.T / q.shape[-1] ** 0.5
            heads.append(torch.softmax(scores, dim=-1) @ values)
        samples.append(torch.stack(heads))
    return torch.stack(samples)
