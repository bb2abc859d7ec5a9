# breaks: values, own_memory
# mistake: none
def scaled_dot_product_attention(q, k, v):
    return v[..., :1, :].expand(*q.shape[:-1], v.shape[-1])
