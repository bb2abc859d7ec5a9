# Standard streams are replaced or closed, and logging is set up.
# outcome: passed
import io
import logging
import sys

logging.basicConfig(level=logging.DEBUG)
sys.stdout = io.StringIO()
sys.stderr.close()
sys.stdin.close()


def scaled_dot_product_attention(q, k, v):
    logging.getLogger("attempt").setLevel(logging.CRITICAL)
    print("unseen")
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
