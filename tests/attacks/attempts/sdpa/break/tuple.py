# The result and the weights.
# outcome: failed
# says: a tuple of 2
def scaled_dot_product_attention(q, k, v):
    weights = (q @ k.mT).softmax(-1)
    return weights @ v, weights
