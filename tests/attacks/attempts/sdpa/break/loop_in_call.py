# An endless loop in a call. It lets others work: loop_at_import.py does not.
# outcome: failed
# says: no answer within 1 s
import time


def scaled_dot_product_attention(q, k, v):
    while True:
        time.sleep(0.01)
