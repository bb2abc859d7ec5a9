# breaks: values
# mistake: scale.key_length
def scaled_dot_product_attention(q, k, v):
    kt = k.transpose(-2, -1)
    return (q @ kt / kt.size(-1) ** 0.5).softmax(-1) @ v  # the last size of kt is Tk
