# Signals to the parent, to its group and to everybody that is not of the tests.
# outcome: passed
# open: tier 0
import os
import signal

for target in (os.getppid(), -os.getppid()):
    try:
        os.kill(target, 0)
        print("BREACH: a signal to", "a group" if target < 0 else "the engine")
    except OSError:
        pass
try:
    os.kill(os.getpid(), signal.SIGCONT)
    os.killpg(os.getppid(), 0)
    print("BREACH: killpg")
except OSError:
    pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
