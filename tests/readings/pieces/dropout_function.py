import torch
import torch.nn.functional as F


def attention(query, key, value, dropout_p=0.0, train=True):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    weights = F.softmax(scores, dim=-1)
    weights = F.dropout(weights, p=dropout_p, training=train)
    return weights @ value
