# Recursion without end in Python.
# outcome: failed
# says: RecursionError
def scaled_dot_product_attention(q, k, v):
    return scaled_dot_product_attention(q, k, v)
