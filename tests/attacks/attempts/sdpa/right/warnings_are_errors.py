# Warnings are errors, signals have handlers, a locale is set, functions are registered for the end.
# outcome: passed
import atexit
import locale
import signal
import warnings

warnings.simplefilter("error")
locale.setlocale(locale.LC_ALL, "C")
signal.signal(signal.SIGTERM, lambda *a: None)
signal.signal(signal.SIGUSR1, lambda *a: None)
atexit.register(print, "bye")


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
