# A link within the own folder that points at a secret.
# outcome: passed
# open: tier 0, no Landlock
import os

target = "@CANARY@/id_rsa"
for make in (os.symlink, os.link):
    try:
        make(target, "here")
        target = "here"
    except OSError:
        pass
try:
    with open(target) as file:
        print("BREACH: read", len(file.read()))
except OSError:
    pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
