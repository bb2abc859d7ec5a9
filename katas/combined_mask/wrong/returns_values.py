# breaks: output_shape
# mistake: none


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    return v
