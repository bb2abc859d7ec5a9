"""Imports torch as the engine does, confines one child for each tier, and prints as JSON what each trial said in it.

Run by test_torch.py in a process of its own: what torch starts in a test process would stay there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback

import torch

from attn_kata.sandbox import JAIL, Plan, confine, prepare

torch.set_num_threads(1)


def products():
    a, b = torch.randn(3, 40, 50), torch.randn(3, 50, 60)
    return torch.allclose(torch.einsum("bij,bjk->bik", a, b), a @ b, atol=1e-4)


def attention():
    q, k, v = (torch.randn(2, 4, 16, 8, dtype=torch.float64) for _ in range(3))
    ours = ((q @ k.transpose(-1, -2)) / 8**0.5).softmax(-1) @ v
    return torch.allclose(torch.nn.functional.scaled_dot_product_attention(q, k, v), ours)


def gradients():
    x = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    (x @ x).softmax(-1).square().sum().backward()
    return bool(x.grad.isfinite().all()) and torch.autograd.gradcheck(torch.sin, (x,))


def seeds():
    import random
    import secrets

    import numpy

    torch.manual_seed(1)
    first = torch.rand(3)
    torch.manual_seed(1)
    numpy.random.default_rng().random()
    return torch.equal(first, torch.rand(3)) and torch.seed() > 0 and bool(secrets.token_hex()) and random.random() < 1


def profiler():
    with torch.autograd.profiler_legacy.profile() as profile:
        torch.ones(3) @ torch.ones(3)
    return any("dot" in event.name for event in profile.function_events)


def what_torch_imports_late():
    """A dispatch mode, an optimizer and a checkpoint each import a thousand modules when first used."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.checkpoint import checkpoint

    seen = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Recorder():
        torch.ones(2).softmax(-1)
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)
    checkpoint(layer, x, use_reentrant=True).sum().backward()
    torch.optim.Adam(layer.parameters()).step()
    return any("softmax" in name for name in seen) and x.grad is not None


def late_imports():
    import asyncio
    import decimal
    import sqlite3
    import tempfile
    import unittest.mock

    import numpy.polynomial
    import torch.distributions
    import torch.nn.utils.rnn
    import torch.testing
    import torch.utils.data

    late = (asyncio, decimal, sqlite3, unittest.mock, numpy.polynomial, torch.distributions)
    return tempfile.gettempdir() == os.getcwd() and all(late)


def linear_algebra():
    a = torch.randn(20, 20, dtype=torch.float64)
    torch.fft.fft(a)
    torch.linalg.svd(a)
    return torch.allclose(torch.linalg.inv(a) @ a, torch.eye(20, dtype=torch.float64), atol=1e-6)


def modules():
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8)
    return layer(x, x, x)[0].shape == x.shape


def traceback_with_source():
    import linecache
    import traceback

    source = "def broken():\n    return 1 / 0\n"
    linecache.cache["attempt.py"] = (len(source), None, source.splitlines(keepends=True), "attempt.py")
    space = {}
    exec(compile(source, "attempt.py", "exec"), space)
    try:
        space["broken"]()
    except ZeroDivisionError:
        return "return 1 / 0" in traceback.format_exc()


def more_threads():
    torch.set_num_threads(2)
    a = torch.randn(600, 600)
    return bool((a @ a).isfinite().all()) and bool(torch.ones(1_000_000).add(1).eq(2).all())


def serialised():
    import io

    file = io.BytesIO()
    torch.save(torch.arange(3), file)
    file.seek(0)
    return torch.load(file).tolist() == [0, 1, 2]


def clock():
    before = time.perf_counter()
    time.sleep(0.001)
    return time.perf_counter() > before and time.strftime("%Y") >= "2024"


TRIALS = (
    products,
    attention,
    gradients,
    seeds,
    profiler,
    what_torch_imports_late,
    late_imports,
    linear_algebra,
    modules,
    traceback_with_source,
    more_threads,
    serialised,
    clock,
)


def tried(tier, prepared, folder):
    """What each trial says in one confined child, which tries one after the other: what torch imports late is imported once."""
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            plan = Plan(
                tier=tier,
                keep_descriptors=(writing,),
                folder=folder,
                cpu_seconds=20,
                memory_bytes=1 << 30,
                file_bytes=0,
                parent_pid=parent,
            )
            in_force = confine(plan, prepared)
            weaker = in_force.tier < min(tier, prepared.available.highest_tier)
            for trial in TRIALS:
                said = outcome(trial) if not weaker else f"only tier {in_force.tier} was in force"
                os.write(writing, f"{json.dumps([trial.__name__, said])}\n".encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = dict(json.loads(line) for line in file)
    os.waitpid(child, 0)
    return {f"{trial.__name__} {tier}": said.get(trial.__name__, "ended without a word") for trial in TRIALS}


def outcome(trial):
    try:
        return "works" if trial() else "gave a wrong answer"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    ready = prepare(tier=JAIL)
    with tempfile.TemporaryDirectory() as folder:
        found = {name: said for tier in (1, 2) for name, said in tried(tier, ready, folder).items()}
    json.dump(found, sys.stdout)
