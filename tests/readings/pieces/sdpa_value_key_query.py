import torch


def attend(value, key, query):
    d = key.shape[-1]
    key_t = key.transpose(-1, -2)
    scores = torch.matmul(query, key_t) / d**0.5
    scores = scores - scores.amax(dim=-1, keepdim=True)
    e = torch.exp(scores)
    weights = e / e.sum(dim=-1, keepdim=True)
    return torch.matmul(weights, value)
