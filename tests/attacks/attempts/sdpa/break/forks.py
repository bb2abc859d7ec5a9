# A fork bomb, of a length that is harmless where it succeeds.
# outcome: passed
# open: tier 0
import os
import time

made = 0
for _ in range(20):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
    except OSError:
        break
if made:
    print("BREACH: forked", made)


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
