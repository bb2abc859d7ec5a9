"""Blocked operations refuse whatever way they are called; everything else stays as it was.

Blocking is for good, so each of these runs in a process of its own. One that has imported torch forks for each.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

BEGIN = """
import contextlib
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

from attn_kata.attempt import blocked
from attn_kata.attempt.blocked import Refused, block, take_refusals
from attn_kata.properties import FORBIDDEN_ATTENTIONS, FORBIDDEN_SOFTMAXES

four = torch.randn(1, 2, 3, 4)  # (B, H, T, D)
three = torch.randn(2, 3, 4)  # (B, T, E)
"""
ATTENTIONS = """
whole = torch.ops.aten.scaled_dot_product_attention.default
by_steps = torch.ops.aten._scaled_dot_product_attention_math.default
flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
inner = nn.MultiheadAttention(4, 2, batch_first=True)
layer = nn.TransformerEncoderLayer(4, 2, batch_first=True)
traced = torch.jit.trace(lambda x: F.scaled_dot_product_attention(x, x, x), (four,))


from torch.nn.attention.flex_attention import flex_attention
from torch.onnx.ops import _impl
onnx = _impl.attention_23._init_fn
decomposed = torch._decomp.decompositions.scaled_dot_product_flash_attention_for_cpu

class Own(nn.MultiheadAttention):
    pass

own = Own(4, 2, batch_first=True)
keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
ways = {
    "F": lambda: F.scaled_dot_product_attention(four, four, four),
    "with a gradient": lambda: F.scaled_dot_product_attention(four.clone().requires_grad_(), four, four),
    "half": lambda: F.scaled_dot_product_attention(*[four.half()] * 3),
    "bfloat16": lambda: F.scaled_dot_product_attention(*[four.bfloat16()] * 3),
    "autocast": lambda: under_autocast(),
    "a view": lambda: F.scaled_dot_product_attention(*[four.mT] * 3),
    "C's name": lambda: torch._C._nn.scaled_dot_product_attention(four, four, four),
    "ops": lambda: whole(four, four, four),
    "a packet": lambda: torch.ops.aten.scaled_dot_product_attention(four, four, four),
    "steps": lambda: by_steps(four, four, four),
    "flash": lambda: flash(four, four, four),
    "redispatch": lambda: whole.redispatch(keys, four, four, four),
    "decompose": lambda: whole.decompose(four, four, four),
    "vmap": lambda: torch.vmap(F.scaled_dot_product_attention)(four, four, four),
    "traced": lambda: traced(four),
    "a module": lambda: inner(three, three, three),
    "a module without weights": lambda: inner.eval()(three, three, three, need_weights=False),
    "its forward": lambda: nn.MultiheadAttention.forward(inner, three, three, three),
    "a subclass": lambda: own(three, three, three),
    "an encoder": lambda: layer.eval()(three),
    "flex": lambda: flex_attention(four, four, four),
    "flex imported later": lambda: flex_imported_later(),
    "a decomposition": lambda: decomposed(four, four, four),
    "ONNX": lambda: onnx(four, four, four, qk_matmul_output_mode=1),
    "nested": lambda: F.scaled_dot_product_attention(*[torch.nested.nested_tensor([four[0]]).transpose(1, 2)] * 3),
    "no grad": lambda: torch.no_grad()(F.scaled_dot_product_attention)(four, four, four),
    "inference": lambda: torch.inference_mode()(F.scaled_dot_product_attention)(four, four, four),
}

def under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.scaled_dot_product_attention(four, four, four)

def flex_imported_later():
    from torch.nn.attention.flex_attention import flex_attention
    return flex_attention(four, four, four)

block(FORBIDDEN_ATTENTIONS, "attempt.py")
"""
SOFTMAXES = """
ways = {
    "a method": lambda: three.softmax(-1),
    "a function": lambda: torch.softmax(three, -1),
    "F": lambda: F.softmax(three, -1),
    "log": lambda: torch.log_softmax(three, -1),
    "special": lambda: torch.special.softmax(three, -1),
    "softmin": lambda: F.softmin(three, -1),
    "a module": lambda: nn.Softmax(-1)(three),
    "a log module": lambda: nn.LogSoftmax(-1)(three),
    "the kernel": lambda: torch.ops.aten._softmax(three, -1, False),
    "masked": lambda: torch.masked.softmax(three, -1),
    "sparse": lambda: torch.sparse.softmax(three.to_sparse(), -1),
    "cross entropy": lambda: F.cross_entropy(three[0], torch.tensor([0, 1, 2])),
    "a decomposition": lambda: decomposed(three, -1, False),
    "a reference": lambda: reference(three, -1),
    "a reference of F": lambda: torch._refs.nn.functional.softmin(three, -1),
}
decomposed = torch._decomp.decompositions._softmax
reference = torch._refs.softmax
block(FORBIDDEN_SOFTMAXES, "attempt.py")
"""
REFUSES = """
assert take_refusals() == []
ends = {}
for name, way in ways.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            way()
            ends[name] = "answered"
        except (Refused, ImportError):
            ends[name] = "refused"
        except BaseException as error:
            ends[name] = "refused" if take_refusals() else repr(error)
        take_refusals()
print({name: end for name, end in ends.items() if end != "refused"})
"""


UNTOUCHED = """
def weighted(x):
    return torch.dropout((x @ x.mT / 2).softmax(-1), 0.0, True) @ x

calls = {
    "attention": weighted,
    "a layer": lambda x: F.linear(x, torch.ones(5, 4)),
    "einsum": lambda x: torch.einsum("...ij,...kj->...ik", x, x),
    "solve": lambda x: torch.linalg.solve(torch.eye(3) * 2, x),
    "fft": lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=-1), n=4, dim=-1),
    "sparse": lambda x: torch.sparse.mm(torch.eye(3).to_sparse(), x[0, 0]),
    "nested": lambda x: torch.nested.to_padded_tensor(torch.nested.as_nested_tensor(list(x[0])), 0.0),
    "vmap": lambda x: torch.vmap(weighted)(x),
    "log_softmax": lambda x: F.log_softmax(x, -1).exp(),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
}

def asked():
    told = {}
    for name, call in calls.items():
        x = torch.arange(24.0).reshape(1, 2, 3, 4).div(10).requires_grad_()
        out = call(x)
        (out * torch.ones_like(out)).sum().backward()
        told[name] = out.detach(), x.grad
    return told

before = asked()
block(FORBIDDEN_ATTENTIONS, "attempt.py")
after = asked()
same = lambda one, other: all(map(torch.equal, before[one], after[other]))
print([name for name in calls if not same(name, name)], take_refusals())
"""
A_LINE = """
block(FORBIDDEN_ATTENTIONS, "attempt.py")
source = "def call(x):\\n    y = x\\n    return F.scaled_dot_product_attention(y, y, y)\\n"
exec(compile(source, "attempt.py", "exec"))
with contextlib.suppress(Refused):
    call(four)
print(take_refusals(), take_refusals())
"""
SCRIPTS = {
    "attentions": ATTENTIONS + REFUSES,
    "softmaxes": SOFTMAXES + REFUSES,
    "untouched": UNTOUCHED,
    "a line": A_LINE,
}
FORKS = """
import json
import os

BEGIN

told = {}
for name, script in json.load(sys.stdin).items():
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.dup2(writing, 1)
        os.close(writing)  # what reads ends with the child
        exec(compile(script, name, "exec"))
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    told[name] = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.strip()]
json.dump(told, sys.stdout)
"""


@pytest.fixture(scope="module")
def said(ready: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each script printed."""
    forks = FORKS.replace("BEGIN", BEGIN)
    done = ready.run_with_torch(forks, cwd=tmp_path_factory.mktemp("blocked"), lines=json.dumps(SCRIPTS))
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert {code for code, _ in told.values()} == {0}, done.stderr[-3000:]
    return {name: printed for name, (_, printed) in told.items()}


@pytest.mark.parametrize("ways", ["attentions", "softmaxes"])
def test_every_way_is_refused(said: dict[str, str], ways: str) -> None:
    assert said[ways] == "{}"


def test_what_is_not_forbidden_is_as_before_with_its_gradients(said: dict[str, str]) -> None:
    """Softmax, products, dropout, layers, linear algebra, transforms, nested and sparse tensors."""
    assert said["untouched"] == "[] []"


def test_a_refusal_tells_the_attempts_own_line_and_is_taken_once(said: dict[str, str]) -> None:
    assert said["a line"] == "[('aten::scaled_dot_product_attention', 3)] []"


def test_a_refusal_is_no_exception_that_a_bare_handler_for_exceptions_catches() -> None:
    from attn_kata.attempt.blocked import Refused

    assert not issubclass(Refused, Exception)
