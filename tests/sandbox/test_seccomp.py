"""The refused system calls, each made for real, and the table that their numbers come from."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import signal
import socket
from pathlib import Path

import pytest

from attn_kata.sandbox import seccomp, syscall_table

NUMBERS = syscall_table.NUMBERS.get(platform.machine(), {})
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
on_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64's own other ways in")


def syscall(number, *arguments):
    """Make the call with arguments that mean nothing and return its result, or the errno as a negative number."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    result = library.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return result if result >= 0 else -ctypes.get_errno()


def test_every_refused_call_is_refused(in_child):
    names = [name for name in syscall_table.REFUSED if name in NUMBERS]

    outcome = in_child(lambda: {name: syscall(NUMBERS[name], -1, -1, -1, -1, -1) for name in names})

    assert {name for name, result in outcome.value.items() if result != -errno.EPERM} == set()
    assert len(outcome.value) > 100


def test_calls_whose_flags_lie_behind_a_pointer_do_not_exist(in_child):
    outcome = in_child(lambda: [syscall(NUMBERS[name], -1, -1, -1) for name in ("clone3", "openat2")])

    assert outcome.value == [-errno.ENOSYS] * 2


def test_calls_that_are_newer_than_the_table_do_not_exist(in_child):
    last = syscall_table.LAST_REVIEWED

    outcome = in_child(lambda: [syscall(last + 1), syscall(last + 7), syscall(500)])

    assert outcome.value == [-errno.ENOSYS] * 3


def test_a_clone_that_is_no_thread_is_refused_with_any_flags(in_child):
    flags = [0, signal.SIGCHLD, 0x00000100 | 0x00004000, 0x00010000 | 0x10000000, 0x10000000]

    outcome = in_child(lambda: [syscall(NUMBERS["clone"], each, 0, 0, 0, 0) for each in flags])

    assert outcome.value == [-errno.EPERM] * len(flags)


def test_signals_to_others_are_refused_in_every_form(in_child):
    parent = os.getpid()

    outcome = in_child(
        lambda: [
            syscall(NUMBERS["kill"], parent, 0),
            syscall(NUMBERS["tkill"], parent, 0),
            syscall(NUMBERS["tgkill"], parent, parent, 0),
            syscall(NUMBERS["rt_sigqueueinfo"], parent, 0, 0),
            syscall(NUMBERS["rt_tgsigqueueinfo"], parent, parent, 0, 0),
        ]
    )

    assert outcome.value == [-errno.EPERM] * 5


def test_limits_and_processors_of_others_are_out_of_reach(in_child):
    parent = os.getpid()

    outcome = in_child(
        lambda: [syscall(NUMBERS["prlimit64"], parent, 7, 0, 0), syscall(NUMBERS["sched_setaffinity"], parent, 8, 0)]
    )

    assert outcome.value == [-errno.EPERM] * 2


def test_the_terminal_cannot_be_typed_into(in_child):
    reading, writing = os.pipe()
    outcome = in_child(lambda: [syscall(NUMBERS["ioctl"], writing, each, 0) for each in (0x5412, 0x541C, 0x8901)])
    os.close(reading)
    os.close(writing)

    assert outcome.value == [-errno.EPERM] * 3


@on_x86_64
def test_the_x32_form_of_a_call_kills(in_child):
    outcome = in_child(lambda: syscall(0x40000000 | NUMBERS["socket"], 2, 1, 0))

    assert os.WTERMSIG(outcome.status) == signal.SIGSYS


@on_x86_64
def test_the_32_bit_form_of_a_call_kills(in_child):
    def action():
        import mmap

        code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (getpid there); int 0x80; ret
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))
        return ctypes.CFUNCTYPE(ctypes.c_int)(start)()

    outcome = in_child(action)

    assert os.WTERMSIG(outcome.status) in (signal.SIGSYS, signal.SIGSEGV)  # SIGSEGV: a kernel without 32-bit calls
    assert outcome.value is None


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_no_socket_can_be_made(in_child, family, kind):
    outcome = in_child(lambda: socket.socket(family, kind).fileno())

    assert (outcome.error, outcome.errno) == ("PermissionError", errno.EPERM)


def test_a_kept_socket_is_read_written_and_polled(in_child):
    ours, theirs = socket.socketpair()
    ours.send(b"question")

    def action():
        import select

        ready = select.poll()
        ready.register(theirs.fileno(), select.POLLIN)
        assert ready.poll(1000)
        os.write(theirs.fileno(), os.read(theirs.fileno(), 100) + b" answered")

    outcome = in_child(action, keep=(theirs.fileno(),))
    theirs.close()

    assert outcome.error == ""
    assert ours.recv(100) == b"question answered"
    ours.close()


@pytest.mark.parametrize("machine", list(HEADERS))
def test_the_numbers_are_the_headers(machine):
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip("no kernel headers here")
    told = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    numbers = {name: int(number) for name, number in told}

    known = {name: number for name, number in syscall_table.NUMBERS[machine].items() if name in numbers}

    assert known == {name: numbers[name] for name in known}
    assert len(known) > 100


@pytest.mark.parametrize("machine", list(HEADERS))
def test_no_jump_leads_out_of_the_program(machine):
    program = seccomp.assemble(machine, refuse_writing=True).instructions
    jumps = {seccomp.BPF_JEQ, seccomp.BPF_JGT, seccomp.BPF_JGE, seccomp.BPF_JSET}

    targets = [at + 1 + max(step.jt, step.jf) for at, step in enumerate(program) if step.code in jumps]

    assert max(targets) < len(program)
    assert program[-1].k == seccomp.SECCOMP_RET_ALLOW


def test_of_the_ioctls_only_those_are_left_that_python_asks_of_its_own_files(in_child):
    FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR = 0x80086601, 0x40086602, 0x401C5820
    reading, writing = os.pipe()

    def action():
        refused = []
        descriptor = os.open(os.__file__, os.O_RDONLY)
        for request in (FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, 0x5412, 0x540E, 0x8901):
            try:
                fcntl.ioctl(descriptor, request, bytes(64))
            except PermissionError:
                refused.append(request)
        os.set_inheritable(descriptor, True)
        os.set_blocking(descriptor, False)
        return len(refused), os.isatty(descriptor), fcntl.ioctl(reading, 0x541B, bytes(4)).hex()

    outcome = in_child(action, keep=(reading, writing))
    os.close(reading)
    os.close(writing)

    assert outcome.value == [6, False, "00000000"]
