"""`import attn_kata`, as a script and a session use it."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import FAILED, HOSTILE, REPORTS, SOURCE, TIES

import attn_kata
from attn_kata.api import grading, reference
from attn_kata.errors import UsageError

SCRIPT = """
import functools, json, math, random, sys
import torch
import torch.nn.functional as F
from math import sqrt as root
from pathlib import Path
from torch import Tensor, nn
import attn_kata

HALF, SIZES, DTYPE, DATA = 0.5, {"D": [1, 2]}, torch.float32, torch.ones(2)
Pair = tuple[Tensor, Tensor]

def scores(q: Tensor, k: Tensor, before: Pair | None = None) -> Tensor:
    return q @ k.transpose(-2, -1) / root(q.shape[-1] ** (2 * HALF))

def logged(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)
    return call

def hidden(function):
    def call(*arguments):
        return function(*arguments)
    return call

@logged
def attention(q, k, v):
    DTYPE, SIZES, DATA, F
    return softmax(scores(q, k)) @ v

def masked(query, key, value, mask=None):
    s = scores(query, key)
    return softmax(s if mask is None else s.masked_fill(mask == 0, -math.inf)) @ value

softmax = lambda x: (x - x.amax(-1, keepdim=True)).exp() / (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)

class MultiHeadAttention(nn.Module):
    pass

if math.pi:
    class MultiHeadAttention(nn.Module):
        def __init__(self, embed_dim, num_heads, dropout=0.0):
            raise NotImplementedError("MultiHeadAttention.__init__ is not written yet")

@hidden
def replaced(q, k, v):
    return v

def local():
    def inner(q, k, v):
        return v
    return inner

made = {}
exec("def from_nowhere(q, k, v): return v", made)
def plain(x: Tensor) -> Tensor:
    return x

linear = nn.Linear(1, 1)
scripted = torch.jit.script(plain)
state = random.getstate(), torch.get_rng_state().tolist(), torch.get_num_threads(), sorted(globals())

said = {}
with attn_kata.Grader("sdpa") as grader:
    for name, attempt in {"decorated": attention, "scores": scores}.items():
        report = grader(attempt)
        said[name] = [report.outcome, report.notes, repr(report).split("\\n")[0], report._repr_html_()[:24]]
    said["source"] = grader(path="right.py").outcome
    report = grader(masked)
    said["masked"] = [report.outcome, report.reading["flags"], report.reading["settled"], report._repr_html_().count("Read as")]
said["strict"] = attn_kata.grade("sdpa", masked, read=[], strict=True, properties=["output_shape"]).reading
for name, attempt in {
    "lambda": lambda q, k, v: v, "partial": functools.partial(attention), "instance": linear, "builtin": torch.softmax,
    "replaced": replaced, "local": local(), "exec": made["from_nowhere"], "scripted": scripted, "number": 3, "path": "sdpa.py",
    "Path": Path("sdpa.py"), "nothing": None, "file": "file",
}.items():
    try:
        attn_kata.grade("sdpa", **{"path": "no.py"} if attempt == "file" else {"attempt": attempt})
    except Exception as problem:
        said[name] = [type(problem).__name__, *problem._render_traceback_()]
try:
    grader(attention)
except Exception as problem:
    said["closed"] = [type(problem).__name__, *problem._render_traceback_()]
from attn_kata import catalog
from attn_kata.api import session
said["twice"] = session.of_object(MultiHeadAttention, catalog.find("mha"), reads=False)[1].code.decode()
said["same"] = [state[0] == random.getstate(), state[1] == torch.get_rng_state().tolist(), state[2] == torch.get_num_threads()]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, ready: Any) -> dict[str, object]:
    """What the script above says, in a process of its own, whose engines have loaded."""
    folder = tmp_path_factory.mktemp("session")
    (folder / "session.py").write_text(SCRIPT, "utf-8")
    right = Path(attn_kata.__file__).parents[2] / "katas" / "sdpa" / "right" / "plain.py"
    (folder / "right.py").write_bytes(right.read_bytes())
    done = subprocess.run(
        ready.script("import runpy; runpy.run_path('session.py', run_name='__main__')"),
        cwd=folder,
        env={**os.environ, "ATTN_KATA_HOME": str(folder / "home"), "TMPDIR": str(folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    left = sorted(path.name for path in folder.iterdir() if path.name.startswith("attn-kata"))
    return {**json.loads(done.stdout), "left": left}


def test_an_object_is_graded_with_what_it_uses_of_the_session(said) -> None:
    note = "'DATA' of this session (Tensor) is not copied to the attempt. If your code needs it, define it there."
    outcome, notes, headline, page = said["decorated"]

    assert outcome == "failed"  # its `DATA` is not there, and the report says so
    assert notes[-1] == note
    assert headline.startswith("FAILED  sdpa  attention")
    assert page == '<div class="attn-kata">\n'
    assert said["scores"][0] == "failed"
    assert said["source"] == "passed"
    assert "is not written yet" in said["twice"], "the class that was defined last"
    assert said["twice"].count("class MultiHeadAttention") == 1


@pytest.mark.parametrize(
    ("name", "what", "following"),
    [
        ("lambda", "A lambda inside a call has no source of its own.", "Write it as a function, with def"),
        ("partial", "A 'partial' has no source.", "Give the function itself"),
        ("instance", "This is an object of the class 'Linear', not the class.", "attn_kata.grade('sdpa', Linear)"),
        (
            "builtin",
            "The source of 'softmax' cannot be found: Python knows it only for code of a cell or a file.",
            "source=",
        ),
        ("replaced", "'call' is defined inside a function, or a decorator replaced it", "without the decorator"),
        ("local", "'inner' is defined inside a function", "Define it at the top level"),
        ("exec", "The source of 'from_nowhere' cannot be found", "source='CODE'"),
        ("scripted", "This is compiled ('ScriptFunction'), and has no source.", "Give what you compiled"),
        ("number", "An attempt is a class or a function, not 'int'.", "source='CODE'"),
        ("path", "'sdpa.py' looks like a path.", "attn_kata.grade('sdpa', path='sdpa.py')"),
        ("Path", "'sdpa.py' is a path.", "attn_kata.grade('sdpa', path='sdpa.py')"),
        ("nothing", "Give one attempt.", "Give a class or a function, path='FILE', or source='CODE'"),
        ("closed", "This Grader was closed.", "Make a new one: attn_kata.Grader('sdpa')"),
    ],
)
def test_what_has_no_source_is_said_in_one_sentence_with_what_to_do(said, name, what, following) -> None:
    kind, sentence, next_step = said[name]

    assert kind == "UsageError"
    assert sentence.startswith(what)
    assert following in next_step


def test_a_function_by_other_names_is_read_and_by_the_contract_where_that_is_asked_for(said) -> None:
    outcome, flags, settled, shown = said["masked"]

    assert outcome == "passed"
    assert flags[0] == "entry=masked"
    assert "mask=keep" in flags
    assert not settled
    assert shown == 1
    assert said["strict"] is None


def test_a_session_stays_as_it_is_and_nothing_is_left(said) -> None:
    assert said["file"] == ["UsageError", "'no.py' cannot be read: No such file or directory."]
    assert said["same"] == [True, True, True]
    assert said["left"] == []


def test_importing_the_package_loads_nothing_and_exposes_five_names() -> None:
    script = "import sys; had = set(sys.modules); import attn_kata; print(*set(sys.modules) - had, *dir(attn_kata))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)

    assert done.stdout.split() == ["attn_kata", *sorted([*attn_kata.__all__, "__version__"])]
    with pytest.raises(AttributeError, match="no attribute 'grader'"):
        _ = attn_kata.grader


@pytest.mark.usefixtures("ready_engines")
@pytest.mark.parametrize("module", [attn_kata, grading, reference], ids=lambda module: module.__name__)
def test_the_examples_in_the_documentation_are_true(module) -> None:
    found = doctest.testmod(module)

    assert found.attempted > 0
    assert found.failed == 0


def test_a_report_lists_mistakes_once_and_is_the_same_json() -> None:
    report = attn_kata.Report.of(TIES, SOURCE)

    assert report.mistakes == ["scale.missing"]
    assert report.to_dict() == TIES.to_dict()
    assert repr(report).startswith("FAILED  sdpa  sdpa.py")
    assert attn_kata.Report.of(FAILED, b"").passed is False


def test_text_from_an_attempt_is_escaped_in_a_cell() -> None:
    page = attn_kata.Report.of(REPORTS["hostile"], f"# {HOSTILE}".encode("utf-8", "replace"))._repr_html_()

    assert not re.search(r"<(script|img|b)\b", page)
    assert page.count("</style>") == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"kata": "sdap", "source": ""}, "There is no kata 'sdap'. Did you mean 'sdpa'?"),
        ({"kata": 3, "source": ""}, "The first argument is the name of a kata, not '3'."),
        ({"kata": "sdpa", "source": "", "seed": -1}, "seed is a whole number"),
        ({"kata": "sdpa", "source": "", "timeout": float("nan")}, "timeout is a number of seconds above 0, not 'nan'."),
        ({"kata": "sdpa", "source": "", "properties": ["valeus"]}, "Did you mean 'values'?"),
        ({"kata": "sdpa", "source": "", "path": "x.py"}, "Give one attempt."),
        ({"kata": "mha", "source": "", "read": ["fuse=q"]}, "--read 'fuse=q' is not KEY=VALUE"),
        ({"kata": "mha", "source": "", "read": "mask=keep", "strict": True}, "so nothing is read."),
        ({"kata": "softmax", "source": "", "read": "mask=keep"}, "takes code with the names of its contract only."),
        ({"kata": "sdpa", "source": 3}, "source is text, not 'int'."),
    ],
)
def test_a_wrong_argument_is_said_before_anything_starts(arguments, what) -> None:
    with pytest.raises(UsageError, match=re.escape(what)):
        attn_kata.grade(**arguments)
