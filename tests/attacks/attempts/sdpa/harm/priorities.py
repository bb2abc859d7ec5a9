# Priorities, processors and limits of the processes above.
# outcome: passed
# open: tier 0
import os
import resource

parent = os.getppid() or 1 << 30  # 0 in a namespace of its own
for name, harm in (
    ("priority", lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent))),
    ("processors", lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent))),
    ("limits", lambda: resource.prlimit(parent, resource.RLIMIT_CORE, resource.prlimit(parent, resource.RLIMIT_CORE))),
):
    try:
        harm()
        print("BREACH:", name)
    except OSError:
        pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
