"""What an attempt child that waits does meanwhile: it uses torch once, so that what is slow the first time is not waited for.

Single operations on numbers that mean nothing; no answer is among them.
"""

from __future__ import annotations

import torch
from torch import nn

from .recorder import Recorder
from .withheld import operation_names


def warm_up() -> None:
    """Touch what attempts use. Leaves torch's generator as it was."""
    state = torch.default_generator.get_state()
    for dtype in (torch.float64, torch.float32, torch.float16):
        _use(dtype)
    with Recorder() as recorder:
        out = torch.ones(2, 2) @ torch.ones(2, 2)
    recorder.told(out)
    operation_names()
    torch.default_generator.set_state(state)


def _use(dtype: torch.dtype) -> None:
    numbers = torch.randn(2, 3, 4, 6, dtype=torch.float64).to(dtype).requires_grad_()
    kept = torch.ones(4, 6, dtype=torch.bool).tril()
    layer = nn.Linear(6, 6).to(dtype)
    done = (
        layer(numbers),
        numbers.softmax(-1),
        numbers.masked_fill(~kept, float("-inf")),
        torch.where(kept, numbers, 0.0),
        numbers.transpose(1, 2).reshape(2, 4, 18),
        numbers.transpose(1, 2).contiguous().view(2, 4, 3, 6),
        numbers @ numbers.transpose(-2, -1),
        nn.functional.dropout(numbers, 0.5, training=True),
        numbers.exp() / numbers.sum(-1, keepdim=True),
    )
    total = torch.stack([part.float().nan_to_num(neginf=0.0).sum() for part in done]).sum()
    torch.autograd.grad(total, [numbers, *layer.parameters()], allow_unused=True)
