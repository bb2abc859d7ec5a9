# style: nn.Dropout, put in train or eval; einsum; a class of error of one's own
import torch
from torch import nn


class WrongProbability(ValueError):
    pass


def attention_with_dropout(q, k, v, p, training):
    if not (0.0 <= p < 1.0):
        raise WrongProbability(p)
    dropout = nn.Dropout(p).train(training)
    weights = torch.einsum("bhid,bhjd->bhij", q * q.shape[-1] ** -0.5, k).softmax(-1)
    return torch.einsum("bhij,bhjd->bhid", dropout(weights), v)
