"""`torch.utils.checkpoint` in an attempt: torch's own, with the compiler that it loads kept out of what is watched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# Prints how many Python calls a profile function sees in the first checkpoint, and what the gradients are.
FIRST_CALL = """
import sys, torch
from attn_kata.attempt.compile_off import disable_compile
disable_compile()
disable_compile()  # as a process does that grades several attempts
from torch.utils.checkpoint import checkpoint

seen = []
layer, x = torch.nn.Linear(2, 1, bias=False), torch.tensor([3.0, 4.0], requires_grad=GRADIENT)
assert "torch._dynamo" not in sys.modules
watch = lambda frame, event, value: seen.append(frame.f_code.co_name)
sys.setprofile(watch)
result = checkpoint(layer, x, use_reentrant=REENTRANT)
kept = sys.getprofile() is watch
sys.setprofile(None)
assert kept and "forward" in seen  # what the checkpoint computes is watched
if result.requires_grad:
    result.backward()
print(len(seen), "torch._dynamo" in sys.modules, None if layer.weight.grad is None else layer.weight.grad.tolist())
"""


@pytest.mark.parametrize(
    ("reentrant", "gradient", "gradients"),
    [
        (False, True, "[[3.0, 4.0]]"),
        (False, False, "[[3.0, 4.0]]"),
        (True, True, "[[3.0, 4.0]]"),
        # Torch's reentrant way loses them where no input asks for a gradient: a mistake that counts.
        (True, False, "None"),
    ],
)
def test_the_first_checkpoint_loads_the_compiler_unwatched_and_stays_torchs(
    ready: Any, tmp_path: Path, reentrant: bool, gradient: bool, gradients: str
) -> None:
    code = FIRST_CALL.replace("REENTRANT", str(reentrant)).replace("GRADIENT", str(gradient))

    ran = ready.run_with_torch(code, cwd=tmp_path)

    seen, loaded, found = ran.stdout.strip().split(" ", 2)
    assert int(seen) < 10_000, ran.stderr  # loading the compiler makes more than a million calls
    assert (loaded, found) == ("True", gradients)
