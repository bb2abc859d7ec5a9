# abort().
# outcome: failed
# says: it crashed (SIGABRT)
import os


def scaled_dot_product_attention(q, k, v):
    os.abort()
