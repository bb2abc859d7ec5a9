# The memory, arguments and files of the processes above are read through /proc.
# outcome: passed
# open: tier 0, no Landlock
import os

found = []
try:
    names = os.listdir("/proc")
except OSError:
    names = []
for pid in {os.getppid(), 1, *(int(name) for name in names if name.isdigit())} - {os.getpid()}:
    for part in ("environ", "maps", "mem", "cmdline", "fd", "cwd"):
        path = f"/proc/{pid}/{part}"
        try:
            if part == "fd":
                found += [part] if os.listdir(path) else []
            elif part == "cwd":
                os.readlink(path)
                found.append(part)
            else:
                with open(path, "rb") as file:
                    found += [part] if part == "mem" or file.read(64) else []
        except OSError:
            pass
if found:
    print("BREACH: read", sorted(set(found)))


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
