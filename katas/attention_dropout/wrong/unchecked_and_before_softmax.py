# breaks: p_is_checked, dropout_acts_on_weights
# mistake: arguments.unchecked + dropout.before_softmax
import math

import torch
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = F.dropout(scores, p, training)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
