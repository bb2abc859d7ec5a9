# A list that holds itself.
# outcome: failed
# says: a list of 1
def scaled_dot_product_attention(q, k, v):
    held = []
    held.append(held)
    return held
