# None.
# outcome: failed
# says: returned None
def scaled_dot_product_attention(q, k, v):
    return None
