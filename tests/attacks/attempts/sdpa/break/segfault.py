# A segmentation fault.
# outcome: failed
# says: it crashed (SIGSEGV)
import ctypes


def scaled_dot_product_attention(q, k, v):
    ctypes.string_at(0)
