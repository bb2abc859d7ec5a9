# breaks: values, leading_dimensions_are_independent
# mistake: layout.batch_as_time
def scaled_dot_product_attention(q, k, v):
    rows, keys, values = q.reshape(-1, q.shape[-1]), k.reshape(-1, k.shape[-1]), v.reshape(-1, v.shape[-1])
    out = (rows @ keys.T / q.shape[-1] ** 0.5).softmax(-1) @ values
    return out.reshape(*q.shape[:-1], v.shape[-1])
