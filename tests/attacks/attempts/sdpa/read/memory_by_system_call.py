# The engine's memory is read with process_vm_readv and ptrace.
# outcome: passed
# open: tier 0 as root
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
there = ctypes.create_string_buffer(8)


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


local, remote = Vector(ctypes.addressof(there), 8), Vector(id(os), 8)
if libc.process_vm_readv(os.getppid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
    print("BREACH: process_vm_readv")
if libc.ptrace(0x4206, os.getppid(), None, None) == 0:  # PTRACE_SEIZE, which stops nobody
    print("BREACH: ptrace")


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
