# SIGKILL to itself.
# outcome: failed
# says: it was killed (SIGKILL)
import os
import signal


def scaled_dot_product_attention(q, k, v):
    os.kill(os.getpid(), signal.SIGKILL)
