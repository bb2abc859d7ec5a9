# breaks: output_shape
# mistake: none
def scaled_dot_product_attention(q, k, v):
    return v
