"""System calls by name: the refused ones with the reasons, and the numbers on each architecture.

The numbers are from the kernel's asm/unistd_64.h (x86-64) and asm-generic/unistd.h (aarch64); they never change.
A name that an architecture lacks is absent from its table.
"""

from __future__ import annotations

# System calls that an attempt does not need, grouped by the attack that each would allow.
# fmt: off
REFUSED = (
    # a fork bomb, a daemon that outlives the grading, another program
    "fork", "vfork", "execve", "execveat",
    # communication by TCP, UDP or unix sockets; open descriptors are used with read and write
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
    "recvfrom", "recvmsg", "recvmmsg", "getsockopt", "setsockopt",
    # reading, stopping or controlling the engine, the grader or another attempt
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "migrate_pages", "move_pages", "setpriority", "ioprio_set",
    "sched_setscheduler", "sched_setparam", "sched_setattr",
    # leaving the process group that is killed at the end
    "setsid", "setpgid",
    # taking back a user id that was given up, and escaping the limits with it
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups",
    "capset",
    # new namespaces and mounts, in which it would be root
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
    # what Landlock does not see: modes, owners, times and extended attributes of the user's own files
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes",
    "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
    # reading extended attributes: browsers store there where a file was downloaded from
    "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
    # emptying, deleting, renaming or creating files, also where Landlock is old or missing
    "creat", "truncate", "ftruncate", "fallocate", "unlink", "unlinkat", "rmdir", "rename", "renameat",
    "renameat2", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "mknod", "mknodat",
    # messages, semaphores, memory and keys shared with other processes; a lock that others wait for
    "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl", "shmget", "shmat",
    "shmctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "add_key",
    "request_key", "keyctl", "flock",
    # memory that no limit counts, work that the filter would not see, and kernel features that torch does not need
    "memfd_create", "memfd_secret", "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup",
    "io_submit", "bpf", "perf_event_open", "userfaultfd", "seccomp", "personality", "modify_ldt", "vmsplice",
    "sync", "syncfs",
    # using up small per-user quotas
    "inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init", "fanotify_mark",
    # the machine itself, in case a capability is left
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
    "swapoff", "sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
    "syslog", "acct", "quotactl", "quotactl_fd", "vhangup", "iopl", "ioperm",
)
# fmt: on

# Newer calls than this one get ENOSYS: nobody has reviewed them yet.
LAST_REVIEWED = 462  # mseal, Linux 6.10

# fmt: off
X86_64 = {
    "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "socket": 41, "socketpair": 53, "connect": 42,
    "bind": 49, "listen": 50, "accept": 43, "accept4": 288, "sendto": 44, "sendmsg": 46, "sendmmsg": 307,
    "recvfrom": 45, "recvmsg": 47, "recvmmsg": 299, "getsockopt": 55, "setsockopt": 54, "ptrace": 101,
    "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440, "process_mrelease": 448,
    "kcmp": 312, "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424, "migrate_pages": 256,
    "move_pages": 279, "setpriority": 141, "ioprio_set": 251, "sched_setscheduler": 144, "sched_setparam": 142,
    "sched_setattr": 314, "setsid": 112, "setpgid": 109, "setuid": 105, "setgid": 106, "setreuid": 113,
    "setregid": 114, "setresuid": 117, "setresgid": 119, "setfsuid": 122, "setfsgid": 123, "setgroups": 116,
    "capset": 126, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304, "chmod": 90, "fchmod": 91,
    "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "utime": 132,
    "utimes": 235, "futimesat": 261, "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "getxattr": 191, "lgetxattr": 192,
    "fgetxattr": 193, "listxattr": 194, "llistxattr": 195, "flistxattr": 196, "creat": 85, "truncate": 76, "ftruncate": 77,
    "fallocate": 285, "unlink": 87, "unlinkat": 263, "rmdir": 84, "rename": 82, "renameat": 264, "renameat2": 316,
    "mkdir": 83, "mkdirat": 258, "link": 86, "linkat": 265, "symlink": 88, "symlinkat": 266, "mknod": 133,
    "mknodat": 259, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "semget": 64, "semop": 65,
    "semtimedop": 220, "semctl": 66, "shmget": 29, "shmat": 30, "shmctl": 31, "mq_open": 240, "mq_unlink": 241,
    "mq_timedsend": 242, "mq_timedreceive": 243, "mq_notify": 244, "mq_getsetattr": 245, "add_key": 248,
    "request_key": 249, "keyctl": 250, "flock": 73, "memfd_create": 319, "memfd_secret": 447,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "io_setup": 206, "io_submit": 209,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "seccomp": 317, "personality": 135, "modify_ldt": 154,
    "vmsplice": 278, "sync": 162, "syncfs": 306, "inotify_init": 253, "inotify_init1": 294,
    "inotify_add_watch": 254, "fanotify_init": 300, "fanotify_mark": 301, "init_module": 175, "finit_module": 313,
    "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168,
    "sethostname": 170, "setdomainname": 171, "settimeofday": 164, "clock_settime": 227, "clock_adjtime": 305,
    "adjtimex": 159, "syslog": 103, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "vhangup": 153, "iopl": 172,
    "ioperm": 173, "clone": 56, "clone3": 435, "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129,
    "rt_tgsigqueueinfo": 297, "prlimit64": 302, "sched_setaffinity": 203, "ioctl": 16, "fcntl": 72, "prctl": 157,
    "open": 2, "openat": 257, "openat2": 437,
}
# fmt: on

# fmt: off
AARCH64 = {
    "execve": 221, "execveat": 281, "socket": 198, "socketpair": 199, "connect": 203, "bind": 200, "listen": 201,
    "accept": 202, "accept4": 242, "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "recvfrom": 207,
    "recvmsg": 212, "recvmmsg": 243, "getsockopt": 209, "setsockopt": 208, "ptrace": 117, "process_vm_readv": 270,
    "process_vm_writev": 271, "process_madvise": 440, "process_mrelease": 448, "kcmp": 272, "pidfd_open": 434,
    "pidfd_getfd": 438, "pidfd_send_signal": 424, "migrate_pages": 238, "move_pages": 239, "setpriority": 140,
    "ioprio_set": 30, "sched_setscheduler": 119, "sched_setparam": 118, "sched_setattr": 274, "setsid": 157,
    "setpgid": 154, "setuid": 146, "setgid": 144, "setreuid": 145, "setregid": 143, "setresuid": 147,
    "setresgid": 149, "setfsuid": 151, "setfsgid": 152, "setgroups": 159, "capset": 91, "unshare": 97,
    "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "name_to_handle_at": 264,
    "open_by_handle_at": 265, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54,
    "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "getxattr": 8, "lgetxattr": 9, "fgetxattr": 10, "listxattr": 11, "llistxattr": 12,
    "flistxattr": 13, "truncate": 45, "ftruncate": 46, "fallocate": 47, "unlinkat": 35, "renameat": 38,
    "renameat2": 276, "mkdirat": 34, "linkat": 37, "symlinkat": 36, "mknodat": 33, "msgget": 186, "msgsnd": 189,
    "msgrcv": 188, "msgctl": 187, "semget": 190, "semop": 193, "semtimedop": 192, "semctl": 191, "shmget": 194,
    "shmat": 196, "shmctl": 195, "mq_open": 180, "mq_unlink": 181, "mq_timedsend": 182, "mq_timedreceive": 183,
    "mq_notify": 184, "mq_getsetattr": 185, "add_key": 217, "request_key": 218, "keyctl": 219, "flock": 32,
    "memfd_create": 279, "memfd_secret": 447, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "io_setup": 0, "io_submit": 2, "bpf": 280, "perf_event_open": 241,
    "userfaultfd": 282, "seccomp": 277, "personality": 92, "vmsplice": 75, "sync": 81, "syncfs": 267,
    "inotify_init1": 26, "inotify_add_watch": 27, "fanotify_init": 262, "fanotify_mark": 263, "init_module": 105,
    "finit_module": 273, "delete_module": 106, "kexec_load": 104, "kexec_file_load": 294, "reboot": 142,
    "swapon": 224, "swapoff": 225, "sethostname": 161, "setdomainname": 162, "settimeofday": 170,
    "clock_settime": 112, "clock_adjtime": 266, "adjtimex": 171, "syslog": 116, "acct": 89, "quotactl": 60,
    "quotactl_fd": 443, "vhangup": 58, "clone": 220, "clone3": 435, "kill": 129, "tkill": 130, "tgkill": 131,
    "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "prlimit64": 261, "sched_setaffinity": 122, "ioctl": 29,
    "fcntl": 25, "prctl": 167, "openat": 56, "openat2": 437,
}
# fmt: on

NUMBERS: dict[str, dict[str, int]] = {"x86_64": X86_64, "aarch64": AARCH64}
