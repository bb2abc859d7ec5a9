# breaks: values
# mistake: none


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1)).masked_fill(~mask, float("-inf"))
    best = scores.argmax(dim=-1, keepdim=True).expand(-1, -1, -1, v.shape[-1])
    return v.gather(2, best) * mask.any(-1, keepdim=True)
