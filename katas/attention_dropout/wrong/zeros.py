# breaks: values
# mistake: none


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(p)
    return q.new_zeros(*q.shape[:-1], v.shape[-1])
