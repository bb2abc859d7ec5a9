# A function that hangs at exit, and a thread that is waited for.
# outcome: passed
import atexit
import threading
import time

atexit.register(time.sleep, 300)


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


threading._register_atexit(time.sleep, 300) if hasattr(threading, "_register_atexit") else None
