# TCP, UDP, unix, netlink and raw sockets; a connection to this machine.
# outcome: passed
# open: tier 0
import socket

kinds = [(socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM)]
kinds += [(socket.AF_INET6, socket.SOCK_STREAM), (16, socket.SOCK_RAW)]
for family, kind in kinds:
    try:
        made = socket.socket(family, kind)
        print("BREACH: a socket", family, kind)
        made.close()
    except OSError:
        pass
try:
    socket.socketpair()
    print("BREACH: a socket pair")
except OSError:
    pass


def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
