# A thread of its own keeps running.
# outcome: passed
import threading
import time

ticks = []


def tick():
    while True:
        time.sleep(0.01)
        ticks.append(1)


threading.Thread(target=tick, daemon=True).start()


def scaled_dot_product_attention(q, k, v):
    threading.Thread(target=time.sleep, args=(0.2,), daemon=True).start()
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
