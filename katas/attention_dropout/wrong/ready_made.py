# breaks: from_scratch
# mistake: none
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(p)
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p if training else 0.0)
