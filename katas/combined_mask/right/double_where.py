# style: -inf, with the empty rows opened before the softmax and emptied after it
import math

import torch


def combine_masks(keep, causal):
    return torch.logical_and(keep.unsqueeze(1).unsqueeze(1), causal.unsqueeze(0).unsqueeze(0))


def masked_attention(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = torch.where(mask | empty, scores, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = torch.where(empty, torch.zeros_like(weights), weights)
    return torch.matmul(weights, v)
