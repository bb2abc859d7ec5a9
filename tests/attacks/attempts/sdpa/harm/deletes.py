# Files of the person's are deleted, renamed and moved away.
# outcome: passed
# open: tier 0
import os
import shutil

for path in ("@CANARY@/victim.txt",):
    for harm in (lambda: os.rename(path, path + ".gone") or os.rename(path + ".gone", path), lambda: shutil.move(path, ".")):
        try:
            harm()
            print("BREACH: moved")
            shutil.move("victim.txt", path) if os.path.exists("victim.txt") else None
        except OSError:
            pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
