# Prints without end, no line among them.
# outcome: failed
# says: no answer within 1 s
import sys


def scaled_dot_product_attention(q, k, v):
    while True:
        sys.stdout.write("x" * 65536)
