# A reply whose bytes come one in a while.
# outcome: failed
# says: no answer within 1 s
import os
import struct
import sys
import time


def scaled_dot_product_attention(q, k, v):
    frame = sys._getframe()
    while "nonce" not in frame.f_locals:
        frame = frame.f_back
    channel = max(number for number in range(3, 64) if _is_open(number))
    reply = struct.pack("<4sQB3xII", b"AKr1", frame.f_locals["nonce"], 0, 512, 512) + struct.pack("<I", 128) * 512
    for byte in reply:
        os.write(channel, bytes([byte]))
        time.sleep(0.05)


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
