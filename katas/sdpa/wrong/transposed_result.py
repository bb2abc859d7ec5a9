# breaks: output_shape
# mistake: none
def scaled_dot_product_attention(q, k, v):
    scores = k @ q.transpose(-2, -1) / q.shape[-1] ** 0.5  # (..., Tk, Tq)
    return v.transpose(-2, -1) @ scores.softmax(-2)  # (..., Dv, Tq)
