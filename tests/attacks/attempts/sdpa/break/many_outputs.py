# A hundred thousand outputs.
# outcome: failed
# says: a tuple of 100000
def scaled_dot_product_attention(q, k, v):
    return (v,) * 100_000
