# An endless loop in a call.
# outcome: failed
# says: no answer within 1 s
def scaled_dot_product_attention(q, k, v):
    while True:
        pass
