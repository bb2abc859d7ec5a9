# breaks: values, weights_sum_to_one
# mistake: softmax.missing
def scaled_dot_product_attention(q, k, v):
    weights = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    return weights @ v
