# User ids, capabilities, namespaces, modules, mounts.
# outcome: passed
# open: tier 0 as root, tier 0 with user namespaces
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
for name, harm in (
    ("unshare a user namespace", lambda: libc.unshare(0x10000000)),
    ("mount", lambda: libc.mount(b"none", b"/tmp", None, 0x44000, None)),
    ("chroot", lambda: libc.chroot(b"/")),
    ("keyctl", lambda: libc.syscall(ctypes.c_long(250), 0, -3, 0)),
    ("io_uring", lambda: libc.syscall(ctypes.c_long(425), 1, None)),
):
    if harm() >= 0:
        print("BREACH:", name)
try:
    os.setuid(0)
    os.setgroups([0])
    print("BREACH: root")
except OSError:
    pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
