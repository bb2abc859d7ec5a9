# Code for oneself under __main__, and a name that shadows a builtin.
# outcome: passed
import random

max = 3
print(random.random())


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


if __name__ == "__main__":
    raise SystemExit("only when run")
