"""seccomp: the forbidden system calls, as a program that the kernel runs before each system call.

The program is classic BPF over struct seccomp_data { int nr; u32 arch; u64 instruction_pointer; u64 args[6]; }.
Arguments that the kernel takes as 32 bits are compared by their lower halves, as the kernel itself does.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from attn_kata.sandbox import libc
from attn_kata.sandbox.syscall_table import LAST_REVIEWED, NUMBERS, REFUSED

SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL = 1, 2
SECCOMP_RET_KILL_PROCESS = 0x80000000
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_ALLOW = 0x7FFF0000

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_SYSCALL_BIT = 0x40000000

BPF_LD_W_ABS, BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET, BPF_RET = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_OFFSET_NR, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16

CLONE_THREAD = 0x00010000
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000

# TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: isatty, select and descriptor inheritance need them. No
# others: some type into the terminal or take it over, and some send signals to other processes. FS_IOC_SETFLAGS and similar
# ones change the attributes of any of the user's files that can be opened for reading.
_ALLOWED_IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# F_SETOWN, F_SETSIG and F_SETOWN_EX can send any signal to any process; F_SETLEASE and F_NOTIFY make others wait.
_REFUSED_FCNTLS = (8, 10, 15, 1024, 1026)
# PR_SET_PDEATHSIG and PR_SET_DUMPABLE would undo the sandbox's settings. An attempt does not need PR_SET_SECCOMP,
# PR_SET_PTRACER and PR_SET_MM. PR_SCHED_CORE keeps other processes off half a processor.
_REFUSED_PRCTLS = (1, 4, 22, 0x59616D61, 35, 62)
# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC: the same bits on both architectures.
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000

_OWN_PID = -1  # a placeholder for the process id, which is known only in the child


class Instruction(NamedTuple):
    """One struct sock_filter. `jt` and `jf` are the instructions to skip if the test is true, and if it is false."""

    code: int
    jt: int
    jf: int
    k: int


@dataclass(frozen=True)
class Filter:
    """A complete program, except for the process id that it allows signals to."""

    instructions: tuple[Instruction, ...]

    def for_process(self, pid: int) -> bytes:
        return b"".join(
            struct.pack("=HBBI", code, jt, jf, pid if k == _OWN_PID else k) for code, jt, jf, k in self.instructions
        )


def available() -> bool:
    """Whether this kernel can filter system calls, and this package knows the numbers of the machine's calls."""
    numbers = NUMBERS.get(platform.machine())
    if numbers is None or struct.calcsize("P") != 8:
        return False
    try:
        action = struct.pack("=I", SECCOMP_RET_KILL_PROCESS)
        libc.syscall("seccomp", numbers["seccomp"], SECCOMP_GET_ACTION_AVAIL, 0, action)
    except (OSError, AttributeError, TypeError):
        return False
    return True


def assemble(machine: str, *, refuse_writing: bool) -> Filter:
    """The program for this architecture. `refuse_writing` is for systems whose Landlock is missing or ignores truncation."""
    numbers = NUMBERS[machine]
    program = [
        # Check the architecture first: with int 0x80 on x86-64, the same numbers mean calls of the 32-bit table.
        _load(_OFFSET_ARCH),
        Instruction(BPF_JEQ, 1, 0, AUDIT_ARCH[machine]),
        _return(SECCOMP_RET_KILL_PROCESS),
        _load(_OFFSET_NR),
    ]
    if machine == "x86_64":  # x32 has the same calls again, with this bit set
        program += [Instruction(BPF_JGE, 0, 1, X32_SYSCALL_BIT), _return(SECCOMP_RET_KILL_PROCESS)]
    program += [Instruction(BPF_JGT, 0, 1, LAST_REVIEWED), _refuse(errno.ENOSYS)]
    for name, body in _judged_by_arguments(refuse_writing=refuse_writing).items():
        if name in numbers:
            program += [Instruction(BPF_JEQ, 0, len(body), numbers[name]), *body]
    for name in REFUSED:
        if name in numbers:
            program += [Instruction(BPF_JEQ, 0, 1, numbers[name]), _refuse(errno.EPERM)]
    program.append(_return(SECCOMP_RET_ALLOW))
    return Filter(tuple(program))


def _judged_by_arguments(*, refuse_writing: bool) -> dict[str, list[Instruction]]:
    judged = {
        # clone with CLONE_THREAD starts a thread, without it a process. clone3 has its flags behind a pointer, which a filter
        # cannot read; ENOSYS makes the C library use clone instead. The same holds for openat2.
        "clone": [
            _load(_argument(0)),
            Instruction(BPF_JSET, 0, 2, CLONE_THREAD),
            Instruction(BPF_JSET, 1, 0, _CLONE_NAMESPACES),
            _return(SECCOMP_RET_ALLOW),
            _refuse(errno.EPERM),
        ],
        "clone3": [_refuse(errno.ENOSYS)],
        "openat2": [_refuse(errno.ENOSYS)],
        # Signals may only go to the process itself (raise and abort use tgkill).
        **{name: _only(0, (_OWN_PID,)) for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")},
        # Otherwise these would change limits and processors of the user's other processes, the engine included.
        **{name: _only(0, (0, _OWN_PID)) for name in ("prlimit64", "sched_setaffinity")},
        "ioctl": _only(1, _ALLOWED_IOCTLS),
        "fcntl": _none_of(1, _REFUSED_FCNTLS),
        "prctl": _none_of(0, _REFUSED_PRCTLS),
    }
    if refuse_writing:
        judged["open"] = _no_flag_of(1, _WRITING)
        judged["openat"] = _no_flag_of(2, _WRITING)
    return judged


def _only(argument: int, values: Iterable[int]) -> list[Instruction]:
    tests = [step for value in values for step in (_equals(value), _return(SECCOMP_RET_ALLOW))]
    return [_load(_argument(argument)), *tests, _refuse(errno.EPERM)]


def _none_of(argument: int, values: Iterable[int]) -> list[Instruction]:
    tests = [step for value in values for step in (_equals(value), _refuse(errno.EPERM))]
    return [_load(_argument(argument)), *tests, _return(SECCOMP_RET_ALLOW)]


def _no_flag_of(argument: int, flags: int) -> list[Instruction]:
    test = Instruction(BPF_JSET, 0, 1, flags)
    return [_load(_argument(argument)), test, _refuse(errno.EPERM), _return(SECCOMP_RET_ALLOW)]


def _equals(value: int) -> Instruction:
    """Run the next instruction if equal, else skip it."""
    return Instruction(BPF_JEQ, 0, 1, value)


def _load(offset: int) -> Instruction:
    return Instruction(BPF_LD_W_ABS, 0, 0, offset)


def _argument(index: int) -> int:
    return _OFFSET_ARGS + 8 * index  # the lower half: both architectures are little-endian


def _return(action: int) -> Instruction:
    return Instruction(BPF_RET, 0, 0, action)


def _refuse(code: int) -> Instruction:
    return _return(SECCOMP_RET_ERRNO | code)


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def load(program: bytes) -> None:
    """Put the program in force for this thread and everything that it starts, for good. Raises OSError.

    Needs no_new_privs, and a process with a single thread.
    """
    instructions = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.addressof(instructions))
    number = NUMBERS[platform.machine()]["seccomp"]
    libc.syscall("seccomp", number, SECCOMP_SET_MODE_FILTER, 0, bytes(described))
