# A thread that has come to its end when the call comes, and a raised recursion limit.
# outcome: passed
import sys
import threading

sys.setrecursionlimit(100_000)
run = threading.Thread(target=print, args=("from a thread",))
run.start()
run.join()


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
