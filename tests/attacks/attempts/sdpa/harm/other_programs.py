# Another program is started: subprocess, exec, posix_spawn, system.
# outcome: passed
# open: tier 0
import os
import subprocess
import sys

try:
    subprocess.run([sys.executable, "-c", ""], check=False)
    print("BREACH: subprocess")
except OSError:
    pass
try:
    os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], {}), 0)
    print("BREACH: posix_spawn")
except OSError:
    pass
if os.system("true") == 0:
    print("BREACH: system")


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
