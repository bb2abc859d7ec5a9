# A thread was started at import and waits for work. The refusal ends it, and what waits for it waits for ever.
# outcome: failed
# says: no answer within
import queue
import threading

import torch

todo, done = queue.Queue(), queue.Queue()


def work():
    while True:
        done.put(torch.nn.functional.scaled_dot_product_attention(*todo.get()))


threading.Thread(target=work, daemon=True).start()


def scaled_dot_product_attention(q, k, v):
    todo.put((q, k, v))
    return done.get()
