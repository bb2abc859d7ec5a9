# What ran is told by the child: an attempt that reaches into the recorder's own objects hides a ready-made attention.
# No process can be a witness against itself; values, gradients and shapes are judged from the numbers all the same.
# outcome: passed
# open: every tier
import sys

import torch

frame = sys._getframe()
while frame is not None:
    recorder = frame.f_globals.get("Recorder")
    if isinstance(recorder, type):
        recorder.told = lambda self, result: ("op aten::mm",)
        print("BREACH: the recorder is replaced")
    frame = frame.f_back


def scaled_dot_product_attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
