# breaks: values, kept_keys_matter
# mistake: none


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    return q.new_zeros(*q.shape[:-1], v.shape[-1])
