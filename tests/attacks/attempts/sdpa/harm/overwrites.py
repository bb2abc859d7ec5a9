# A file of the person's is opened for writing, appended to, truncated, mapped.
# outcome: passed
# open: tier 0
import os

path = "@CANARY@/victim.txt"
for flags in (os.O_WRONLY, os.O_RDWR | os.O_APPEND):
    try:
        os.close(os.open(path, flags))
        print("BREACH: opened for writing")
    except OSError:
        pass
try:
    os.truncate(path, os.stat(path).st_size)
    print("BREACH: truncated")
except OSError:
    pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
