# breaks: output_shape
# mistake: layout.T_of_batch
import math


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])  # .T turns every dimension round
    return scores.softmax(-1) @ v
