# Memory eaten by Python.
# outcome: failed
# says: it ran out of memory
def scaled_dot_product_attention(q, k, v):
    return bytearray(1 << 36)
