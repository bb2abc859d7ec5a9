# Shared memory and files in /dev/shm that would stay.
# outcome: passed
# open: tier 0
import mmap
import os

for path in ("/dev/shm/attn_kata_planted", "/tmp/attn_kata_planted", "/var/tmp/attn_kata_planted"):
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
        os.unlink(path)
        os.ftruncate(descriptor, 1 << 16)
        mmap.mmap(descriptor, 1 << 16)
        print("BREACH: made", path)
    except OSError:
        pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
