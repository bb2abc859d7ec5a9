# A generator.
# outcome: failed
# says: builtins.generator
def scaled_dot_product_attention(q, k, v):
    yield v
