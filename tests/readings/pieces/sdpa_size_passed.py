"""A function of an interview note: the size of a head is handed in, and dropout as a module or None."""

import math

import torch
import torch.nn.functional as F


def attend(q, k, v, d_k, dropout=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
    weights = F.softmax(scores, dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return torch.matmul(weights, v)
