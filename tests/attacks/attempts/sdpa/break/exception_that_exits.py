# An exception whose __str__ ends the process.
# outcome: failed
# says: it ended its process (exit status 7)
import os


class Broken(Exception):
    def __str__(self):
        os._exit(7)


def scaled_dot_product_attention(q, k, v):
    raise Broken
