# The right values without a gradient.
# outcome: failed
# says: no gradient reaches
def scaled_dot_product_attention(q, k, v):
    return ((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v).detach()
