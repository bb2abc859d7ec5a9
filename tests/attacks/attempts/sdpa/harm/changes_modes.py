# Modes, owners, times and attributes.
# outcome: passed
# open: tier 0
import os

path = "@CANARY@/victim.txt"
mine = [
    lambda: os.chmod(path, 0o644),
    lambda: os.chown(path, -1, -1),
    lambda: os.utime(path, ns=(0, 0)) or os.utime(path, ns=(10**18, 10**18)),
    lambda: os.setxattr(path, "user.attack", b"x") or os.removexattr(path, "user.attack"),
]
for harm in mine:
    try:
        harm()
        print("BREACH: changed")
    except OSError:
        pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
