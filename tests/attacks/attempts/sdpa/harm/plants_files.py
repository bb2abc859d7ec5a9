# Files, folders, links, sockets and pipes are planted.
# outcome: passed
# open: tier 0
import os

for folder in ("@CANARY@", "@CANARY@/empty", "/tmp", "/var/tmp"):
    for name, make, undo in (
        ("attn_kata_planted", lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)), os.unlink),
        ("attn_kata_planted", os.mkdir, os.rmdir),
        ("attn_kata_planted", lambda path: os.symlink("/", path), os.unlink),
        ("attn_kata_planted", os.mkfifo, os.unlink),
    ):
        try:
            make(os.path.join(folder, name))
            print("BREACH: planted")
            undo(os.path.join(folder, name))
        except OSError:
            pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
