# float16 where float64 is asked for.
# outcome: failed
def scaled_dot_product_attention(q, k, v):
    return ((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v).half()
