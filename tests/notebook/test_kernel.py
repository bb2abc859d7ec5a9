"""The magics in a real kernel: what a notebook shows, what stays as it was, and what is left when the kernel ends."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import nbformat
import psutil
from jupyter_client import KernelClient, KernelManager
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from tests.notebook.conftest import RIGHT, WRONG, notebook, told

from attn_kata import catalog

HANGING = "%%kata sdpa --timeout 2\ndef scaled_dot_product_attention(q, k, v):\n    while True: pass\n"
CRASHING = "%%kata sdpa\nimport os\ndef scaled_dot_product_attention(q, k, v):\n    os.abort()\n"
KV_CACHE = catalog.find("kv_cache").solution.read_text("utf-8")
# How a class is taken to be graded that annotations name before it is there, with a table that is filled, and a method from
# elsewhere.
CHANGED = """
from __future__ import annotations
class Chain:
    def same(self) -> Chain: return TABLES
def same(self): return None
Chain.same = same
TABLES = {}
TABLES[1] = before
def taken():
    from attn_kata import catalog
    from attn_kata.api import session
    made = session.of_object(Chain, catalog.find("mha"), reads=False)[1]
    lines = made.code.decode().split("\\n")
    print(lines[1], "TABLES = {}" in lines, *made.notes, sep="\\n")
taken()
del annotations, Chain, same, taken, TABLES, MultiHeadAttention, Cache, CachedSelfAttention, nn
"""
# What the kernel has before and after; what IPython keeps of every cell is no matter of ours.
STATE = """
import os, random, torch
def state():
    names = {name for name in globals() if not (name.startswith("_") or name in ("In", "Out", "before"))}
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    drawn = torch.get_rng_state().tolist()
    return names, random.getstate(), os.getcwd(), threads, dtype, drawn, torch.is_grad_enabled()
before = state()
"""


def test_a_notebook_from_the_first_cell_to_the_export(surroundings: Path) -> None:
    """One kernel for everything that a cell can be: a kernel and its engine take seconds to start."""
    from nbconvert import HTMLExporter  # half as slow as torch, and of this test alone

    cells = {
        "load": "%load_ext attn_kata",
        "state": STATE,
        "failing": f"%%kata sdpa\n{WRONG}",
        "passing": f"%%kata sdpa\n{RIGHT}",
        "helpers": "import math\nfrom torch import Tensor\nHALF = 0.5\ndef scaled(q, k):\n"
        "    return q @ k.transpose(-2, -1) / q.shape[-1] ** HALF",
        "uses": "%%kata sdpa\ndef scaled_dot_product_attention(q: Tensor, k, v):\n"
        "    !echo a shell line\n    return scaled(q, k).softmax(-1) @ v / math.sqrt(4)\nprint(await_me)\n",
        "defines": RIGHT,
        "session": "%kata sdpa",
        "other names": "%%kata sdpa --mask keep\ndef attend(query, key, value, mask):\n"
        "    s = query @ key.mT / key.shape[-1] ** 0.5\n    return s.masked_fill(mask, float('-inf')).softmax(-1) @ value",
        "other name": "%kata sdpa --class scaled",
        "removed": "del scaled_dot_product_attention",
        "nothing": "%kata sdpa",
        "misspelt": "%%kata sdap\nx = 1",
        "option": "%%kata sdpa --sed 3\nx = 1",
        "quote": "%%kata 'sdpa\nx = 1",
        "no kata": "%kata_start --level blank mha gqa",
        "no body": "%%kata sdpa",
        "unwritten": "%%kata sdpa\n# later\n",
        "alias": KV_CACHE,
        "cache": "%kata kv_cache",
        "no such": "%kata_explain scale.embed",
        "a kata": "%kata_explain mha",
        "family": "%kata_explain scale",
        "hanging": HANGING,
        "crashing": CRASHING,
        "hint": "%kata_hint sdpa",
        "explain": "%kata_explain scale.no_sqrt",
        "refused": "%kata_solution mha",
        "solution": "%kata_solution sdpa",
        "start": "%kata_start sdpa --level blank",
        "complete": "from IPython.core.completer import provisionalcompleter\n"
        "with provisionalcompleter():\n"
        "    done = [[one.text for one in get_ipython().Completer.completions(text, len(text))]\n"
        "            for text in ('%%kata sd', '%kata_explain scale.emb')]\nprint(done); del provisionalcompleter, done",
        "another": "# attn-kata: qkv_attention\nclass MultiHeadAttention:\n    pass",
        "another kata": "%kata mha",
        "changed": CHANGED,
        "after": "del math, Tensor, HALF, scaled; print([a == b for a, b in zip(before, state())])",
    }
    made = notebook(*cells.values())
    NotebookClient(made, timeout=60, allow_errors=True).execute()
    said = {name: told(cell) for name, cell in zip(cells, made.cells, strict=True)}

    assert said["failing"].startswith("FAILED  sdpa  In [3]")
    assert "scale.no_sqrt" in said["failing"]
    assert "Loading torch" not in said["failing"], "the line that waits is replaced by the report"
    assert said["passing"].startswith("PASSED  sdpa")
    assert said["uses"].startswith("FAILED  sdpa")
    assert ": line 5, NameError: name 'await_me' is not defined" in " ".join(said["uses"].split())
    assert "'await_me' is not defined here. Define it, or run the cell" in " ".join(said["uses"].split())
    assert said["session"].startswith("PASSED  sdpa  scaled_dot_product_attention")
    assert said["other names"].startswith("FAILED  sdpa")
    assert "Read as sdpa:  attend" in said["other names"]
    assert "mask.inverted" in said["other names"]
    assert said["other name"].startswith("UNGRADED  sdpa  scaled")  # it is no attention, and no known mistake of one
    assert "Read as sdpa:  scaled" in said["other name"]
    assert said["nothing"] == (
        "This session has no 'scaled_dot_product_attention', which sdpa asks for.\n"
        "Run the cell that defines it, then this one again. For a new stub: %kata_start sdpa"
    )
    assert said["misspelt"] == "There is no kata 'sdap'. Did you mean 'sdpa'?\nSee them all: attn_kata.katas()"
    takes = "What it takes: %kata?"
    assert said["option"] == f"The line of %kata is not clear: unrecognized arguments: --sed 3.\n{takes}"
    assert said["quote"] == f"The line of %kata is not clear: No closing quotation.\n{takes}"
    assert said["no kata"].startswith("The line of %kata_start is not clear: unrecognized arguments: gqa.\n")
    assert said["no body"] == said["unwritten"] == "The cell was empty: it has the stub now.\n"
    assert said["cache"].startswith("PASSED  kv_cache"), "its `Cache = tuple[...]` is taken along"
    assert said["no such"].endswith("List all mistakes: %kata_explain")
    assert said["another kata"] == (
        "The last cell that ran with 'MultiHeadAttention' is for qkv_attention.\n"
        "Run the cell for mha, then this one again"
    )
    assert "More about one: %kata_explain scale." in said["family"]
    assert said["a kata"] == "'mha' is a kata.\nStart it: %kata_start mha"
    assert said["changed"] == (
        "from __future__ import annotations\nTrue\n"
        "'same' of 'Chain' was changed after the class. This change is not copied: write it in the class.\n"
    )
    assert "ran out of time" in said["hanging"]
    assert "it crashed (SIGABRT)" in said["crashing"]
    assert said["hint"].startswith("sdpa, hint 1 of")
    assert max(map(len, said["hint"].split("\n"))) <= 88
    assert "scale.no_sqrt: " in said["explain"]
    assert said["refused"].startswith("You have not passed mha yet")
    assert "def scaled_dot_product_attention" in said["solution"]
    assert "In [" not in said["start"]
    assert said["complete"] == "[['sdpa'], ['scale.embed_dim']]\n"
    assert said["after"] == f"{[True] * 7}\n"
    assert not any("Traceback" in text for text in said.values())
    assert list((surroundings / "tmp").iterdir()) == []

    shown = made.cells[2].outputs
    assert [output.output_type for output in shown] == ["display_data"]
    assert "<script" not in shown[0].data["text/html"]
    saved = nbformat.reads(nbformat.writes(made), as_version=4)
    exported, _ = HTMLExporter().from_notebook_node(saved)
    assert '<span class="badge failed">FAILED</span>' in exported
    assert "scale.no_sqrt" in exported


def test_an_interrupt_and_a_kill_leave_nothing(surroundings: Path) -> None:
    manager, client = start_new_kernel()
    try:
        client.execute_interactive("%load_ext attn_kata", timeout=30)
        begun, below = _hanging(manager, client)
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=20)
        while reply["parent_header"]["msg_id"] != begun:
            reply = client.get_shell_msg(timeout=20)

        assert reply["content"]["status"] == "error", "cells that wait must not run"
        assert reply["content"]["traceback"] == ["The grading was stopped. To grade, run the cell again."]
        assert _gone(below)
        assert list((surroundings / "tmp").glob("attn-kata-*")) == []

        said: list[str] = []
        for _ in range(5):  # for a moment after an error a kernel drops what is sent to it
            answered = client.execute_interactive(
                f"%%kata sdpa\n{RIGHT}", timeout=30, output_hook=lambda message: said.append(str(message["content"]))
            )
            if answered["content"]["status"] != "aborted":
                break
            time.sleep(0.2)
        assert any("PASSED  sdpa" in text for text in said), said

        _, below = _hanging(manager, client)
        os.kill(manager.provisioner.pid, signal.SIGKILL)

        assert _gone(below)
        assert list((surroundings / "tmp").glob("attn-kata-*")) == []
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _hanging(manager: KernelManager, client: KernelClient) -> tuple[str, list[psutil.Process]]:
    """Begin to grade an attempt that hangs: the id of the request, and the processes below the kernel once it runs."""
    begun = client.execute(HANGING.replace("--timeout 2", ""))
    process = psutil.Process(manager.provisioner.pid)
    until = time.monotonic() + 30
    while not _busy(process):
        assert time.monotonic() < until, "the attempt does not run"
        time.sleep(0.05)
    return begun, process.children(recursive=True)


def _busy(kernel: psutil.Process) -> bool:
    """Whether some process below the engine has computed for a while: the attempt in its loop."""
    with contextlib.suppress(psutil.NoSuchProcess):  # one may end while we look
        below = kernel.children(recursive=True)
        return any(one.ppid() != kernel.pid and one.cpu_times().user > 0.1 for one in below)
    return False


def _gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=10)[1] == []
