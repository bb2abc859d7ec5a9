# breaks: values
# mistake: none


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    weights = mask.to(v.dtype).expand(*q.shape[:-1], k.shape[-2])
    return weights / weights.sum(-1, keepdim=True).clamp(min=1) @ v
