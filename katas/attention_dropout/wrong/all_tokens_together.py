# breaks: values
# mistake: layout.batch_as_time
import math

import torch
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(p)
    flat_q, flat_k, flat_v = (part.reshape(-1, part.shape[-1]) for part in (q, k, v))
    weights = torch.softmax(flat_q @ flat_k.T / math.sqrt(q.shape[-1]), dim=-1)
    return (F.dropout(weights, p, training) @ flat_v).reshape(*q.shape[:-1], -1)
