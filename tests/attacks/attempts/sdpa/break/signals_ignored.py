# Every signal is ignored, then an endless loop.
# outcome: failed
# says: no answer within 1 s
import signal

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def scaled_dot_product_attention(q, k, v):
    while True:
        pass
