# Asks where temporary files go, and copes where they may not be written.
# outcome: passed
import os
import tempfile

assert os.path.isdir(tempfile.gettempdir())
try:
    with tempfile.TemporaryFile() as file:
        file.write(b"mine")
except OSError:
    pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
