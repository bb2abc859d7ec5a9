# A sparse result.
# outcome: failed
# says: layout
def scaled_dot_product_attention(q, k, v):
    return v.to_sparse()
