# breaks: values
# mistake: none
def scaled_dot_product_attention(q, k, v):
    return v.mean(dim=-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1]).contiguous()
