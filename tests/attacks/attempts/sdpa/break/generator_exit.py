# GeneratorExit.
# outcome: failed
# says: raised GeneratorExit
def scaled_dot_product_attention(q, k, v):
    raise GeneratorExit
