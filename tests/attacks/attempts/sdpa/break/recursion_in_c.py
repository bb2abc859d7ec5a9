# Recursion without end in C, past the limit that Python would set. Python 3.12 has a limit of its own there.
# outcome: failed
# says: it crashed (SIGSEGV) | raised RecursionError
import sys

sys.setrecursionlimit(10**9)


class Deep:
    def __repr__(self):
        return repr([self])


def scaled_dot_product_attention(q, k, v):
    repr(Deep())
