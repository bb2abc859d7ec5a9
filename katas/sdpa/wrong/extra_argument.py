# breaks: output_shape
# mistake: none
def scaled_dot_product_attention(q, k, v, d_k):
    return (q @ k.transpose(-2, -1) / d_k**0.5).softmax(-1) @ v
