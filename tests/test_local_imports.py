"""What an attempt imports from files beside it is read with it, line for line."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from attn_kata import local_imports, sources
from attn_kata.readings import inference
from attn_kata.readings.source import syntax
from attn_kata.sources import Source

NORM = """\
import torch as t

EPS = 1e-6

def _centred(x):
    return x - x.mean()


def norm(x):
    return _centred(x) / (x.std() + EPS)
"""


def written(folder: Path, **files: str) -> Path:
    """The file `main.py`, beside these; `a__b` is b.py in the folder a, and `a__init` its __init__.py."""
    for name, text in files.items():
        *above, last = name.split("__")
        path = folder.joinpath(*above, f"{last.replace('init', '__init__')}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder / "main.py"


def run(source: Source) -> types.SimpleNamespace:
    namespace: dict[str, object] = {}
    exec(source.code, namespace)
    return types.SimpleNamespace(**namespace)


def place(source: Source, text: str) -> str:
    """Where the line with this text is, as a report says it."""
    line = next(at for at, line in enumerate(source.code.decode().splitlines(), 1) if text in line)
    return next(cell.place(line) for cell in source.cells if cell.first <= line <= cell.last)


def test_what_is_imported_is_above_and_each_line_keeps_its_number_and_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main = written(
        tmp_path,
        main="# attn-kata: sdpa\nfrom helpers import norm as n\n\n\ndef f(x):\n    return n(x)\n",
        helpers=f"{NORM}\n\ndef unused():\n    raise SystemExit\n\n\n1 / 0\n",
    )
    source = local_imports.read(main)

    import torch

    assert run(source).f(torch.tensor([1.0, 3.0])).tolist() == pytest.approx([-1 / 2**0.5, 1 / 2**0.5], rel=1e-5)
    assert "unused" not in source.code.decode()
    assert place(source, "x - x.mean()") == "helpers.py, line 6"
    assert place(source, "return n(x)") == "line 6"
    assert source.notes == ("Read with what it imports from helpers.py.",)


@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("from package.deep import norm", "norm(2)"),
        ("from .package.deep import norm", "norm(2)"),
        ("from .package import other", "other(2)"),
        ("from package import *", "other(2)"),
        ("from package import deep", "deep.norm(2)"),
        ("import package.deep as d", "d.norm(2)"),
        ("import package", "package.other(2)"),
        ("from .package import deep as d, other", "d.norm(other(1))"),
        ("try:\n    from .package import other\nexcept ImportError:\n    from package import other", "other(2)"),
    ],
)
def test_every_way_to_import(tmp_path, statement, use):
    main = written(
        tmp_path,
        main=f"{statement}\n\n\ndef f():\n    return {use}\n",
        package__init="from .deep import norm as other\nfrom . import deep\n",
        package__deep=(
            "from . import constants\nfrom ..above import AGAIN\n\n\n"
            "def norm(x):\n    return x * constants.TWO * AGAIN\n"
        ),
        package__constants="TWO = 2\n",
        above="AGAIN = 3\n",
    )
    source = local_imports.read(main)

    assert run(source).f() in (12, 36)
    assert place(source, "return x * constants.TWO").endswith("deep.py, line 6")


def test_an_import_inside_a_function_and_from_the_projects_top(tmp_path):
    written(
        tmp_path,
        model__layers__attention="def f():\n    from model.utils import two\n    return two()\n",
        model__utils="def two():\n    return 2\n",
    )
    (tmp_path / "pyproject.toml").touch()

    assert run(local_imports.read(tmp_path / "model" / "layers" / "attention.py")).f() == 2


def test_two_files_that_import_each_other(tmp_path):
    main = written(
        tmp_path,
        main="from a import even\n\n\ndef f(n):\n    return even(n)\n",
        a="import b\n\n\ndef even(n):\n    return n == 0 or b.odd(n - 1)\n",
        b="from a import even\n\n\ndef odd(n):\n    return n > 0 and even(n - 1)\n",
    )
    made = run(local_imports.read(main))

    assert made.f(4)
    assert not made.f(5)


def test_a_name_that_means_two_things_is_said_and_its_import_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main = written(
        tmp_path,
        main="from helpers import attend\n\n\ndef softmax(x):\n    return x\n",
        helpers="def softmax(x):\n    return 2 * x\n\n\ndef attend(x):\n    return softmax(x)\n",
    )
    source = local_imports.read(main)

    assert source.code == main.read_bytes()
    assert source.notes == ("'softmax' of helpers.py is not read: there is another 'softmax'. Rename one of them.",)


def test_the_same_library_under_one_name_is_no_conflict_and_another_one_is(tmp_path):
    text = "from torch import nn\n\n\ndef layer():\n    return nn.Linear\n"
    same = written(tmp_path, main="import torch.nn as nn\nfrom helpers import layer\n", helpers=text)
    assert run(local_imports.read(same)).layer().__name__ == "Linear"

    written(tmp_path, main="import math as nn\nfrom helpers import layer\n")
    source = local_imports.read(same)
    assert source.code == same.read_bytes()
    assert "there is another 'nn'" in source.notes[0]


def test_what_the_other_file_does_not_have_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main = written(tmp_path, main="import helpers\nfrom more import b\n\nx = helpers.a\n", helpers="", more="c = 1\n")
    notes = local_imports.read(main).notes

    assert "'helpers.py' has no 'a'." in notes
    assert "'more.py' has no 'b'." in notes


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nimport math\nfrom torch.nn import functional as F\n",  # math.py beside it is not meant
        "from nowhere import x\n",
        "from broken import x\n",
        "def f(:\n",
        "from latin import x\n",
        "from . import (\n",
        "if __name__ == '__main__':\n    from helpers import x\n",
    ],
)
def test_else_the_file_is_what_it_was(tmp_path, text):
    main = written(tmp_path, main=text, math="sqrt = None\n", torch="x = 1\n", broken="def f(:\n", helpers="x = 1\n")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")

    assert local_imports.read(main) == sources.read(main)


def test_a_whole_project_is_too_much(tmp_path):
    body = "\n".join(f"def f{at}():\n    return 'long' * {at}\n" for at in range(3_000))
    uses = ", ".join(f"f{at}" for at in range(3_000))
    main = written(tmp_path, main="from helpers import every\n", helpers=f"{body}\nevery = ({uses})\n")
    source = local_imports.read(main)

    assert source.code == main.read_bytes()
    assert source.notes[0].startswith("Not all that it imports is read: that is more than 48 KB.")


def test_nothing_is_read_above_the_project_or_in_the_home(tmp_path, monkeypatch):
    written(tmp_path, work__main="from helpers import x\n", helpers="x = 1\n")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    main = tmp_path / "work" / "main.py"

    assert local_imports.read(main) == sources.read(main)


def test_what_is_graded_is_a_definition_of_the_file_itself(tmp_path):
    attention = (Path(__file__).parent / "readings" / "pieces" / "undocumented_fill.py").read_text("utf-8")
    name = next(line for line in attention.splitlines() if line.startswith("class ")).split()[1].partition("(")[0]
    main = written(
        tmp_path,
        attention=attention,
        main=(
            f"import torch.nn as nn\nfrom attention import {name} as Attention\n\n\n"
            "class Layer(nn.Module):\n"
            "    def __init__(self, d_model, n_heads):\n"
            "        super().__init__()\n"
            "        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)\n"
            "        self.attention = Attention(d_model, n_heads)\n"
            "        self.up, self.down = nn.Linear(d_model, 8), nn.Linear(8, d_model)\n\n"
            "    def forward(self, x):\n"
            "        x = x + self.attention(self.norm1(x))\n"
            "        return x + self.down(self.up(self.norm2(x)).relu())\n"
        ),
    )
    slug, entry, _ = next(inference.katas_of(local_imports.read(main).code))

    assert (slug, entry) == ("transformer_block", "Layer")


def test_what_is_used_of_a_module_belongs_to_the_definition_that_uses_it(tmp_path):
    main = written(
        tmp_path,
        main="import ops\n\n\nclass Layer:\n    def __init__(self):\n        self.ff = ops.Ff()\n",
        ops="class Ff:\n    def forward(self, x):\n        return x.relu()\n",
    )
    found = syntax.of_source(local_imports.read(main).code)
    layer = found.find("Layer")

    assert layer is not None
    assert ".relu()" in found.text(layer)
    assert [one.name for one in found.own] == ["Layer"]
