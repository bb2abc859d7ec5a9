# System V shared memory and semaphores, which outlive processes.
# outcome: passed
# open: tier 0
import ctypes

libc = ctypes.CDLL(None)
segment = libc.shmget(0, 4096, 0o1600)
if segment >= 0:
    libc.shmctl(segment, 0, None)
    print("BREACH: shmget")
semaphore = libc.semget(0, 1, 0o1600)
if semaphore >= 0:
    libc.semctl(semaphore, 0, 0)
    print("BREACH: semget")


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
