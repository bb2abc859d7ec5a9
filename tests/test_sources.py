"""A notebook read as source: what is taken, what is left out, which cell and line a report then says, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from attn_kata import sources
from attn_kata.errors import UsageError
from attn_kata.report.model import Diagnosis, NamedMistake
from attn_kata.sources import Part
from tests.report.conftest import FAILED, UNGRADED, finding


def code(text: str) -> dict[str, object]:
    return {"cell_type": "code", "source": text.splitlines(keepends=True), "outputs": [], "metadata": {}}


def written(tmp_path: Path, *cells: dict[str, object], **more: object) -> Path:
    file = tmp_path / "mha.ipynb"
    file.write_text(json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}))
    return file


CELL = '''\
%matplotlib inline
!pip install 'something
from __future__ import annotations
files = !ls
torch.add?
if files:
    %time print(1)
!one \\
  two
x = (7
  % 3)
y = """
!kept
%kept
"""
await later(x)
for one in files: await one
display(x)  # shown?
'''
READ = '''\
pass  # %matplotlib inline
pass  # !pip install 'something
# from __future__ import annotations
files = []  # files = !ls
pass  # torch.add?
if files:
    pass  # %time print(1)
pass  # !one \\

x = (7
  % 3)
y = """
!kept
%kept
"""
pass
pass
display(x)  # shown?
'''


def test_what_is_not_python_does_nothing_and_every_line_keeps_its_number(tmp_path: Path) -> None:
    text = {"cell_type": "markdown", "source": "# Title"}
    shell = code("%%bash\nls (\n")
    timed = code("# a comment\n%%time\nz = 1\n")
    source = sources.read(written(tmp_path, text, code(CELL), shell, timed))
    read = source.code.decode()
    first, bash, last = source.cells

    assert read.startswith("# coding: utf-8\nfrom __future__ import annotations\ndisplay = print")
    assert f"# cell 2\n{READ}# cell 3\n# %%bash\n# ls (\n# cell 4\n# a comment\n# %%time\nz = 1\n" in read
    compile(read, "cells", "exec", dont_inherit=True)
    assert (first.name, bash.name, last.name) == ("cell 2", "cell 3", "cell 4")
    assert read.split("\n")[first.first - 1] == "pass  # %matplotlib inline"
    assert last.place(last.last) == "cell 4, line 3"
    assert source.notes == tuple(
        f"Left out, because only a notebook can await: cell 2, line {line}. If your code needs it, write it without await."
        for line in (16, 17)
    )


def test_a_report_says_cell_and_line_wherever_it_has_a_line() -> None:
    source = sources.joined(
        [Part(name="cell 2", text="a\nb"), Part(name="", text="c\nd"), Part(name="In [3]", text="e", first=9)]
    )
    mistake = NamedMistake(id="a.b", title="", explanation="", question="", line=4, source_line="b")
    failed = finding(outcome="failed", message="raised KeyError: 1, line 6 in forward", line=6)
    plain = dataclasses.replace(FAILED, findings=[failed], diagnosis=[Diagnosis(mistakes=[mistake])])
    report = source.located(plain)

    assert report.findings[0].place == "line 1"
    assert report.findings[0].message == "raised KeyError: 1, line 1 in forward"
    assert report.diagnosis[0].mistakes[0].place == "cell 2, line 2"
    assert report.diagnosis[0].mistakes[0].line == 4
    assert source.located(UNGRADED).ungraded_because == "it is not Python (invalid syntax) in cell 2, line 1: def f(:"
    assert source.cells[2].place(9) == "In [3], line 9"
    assert sources.of_bytes(b"x = 1", "-").located(FAILED) is FAILED


TWICE = "class MultiHeadAttention:\n    pass\n"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([TWICE, "x = 1", f"# anew\n{TWICE}"], "cell 1, line 1, and again in cell 3, line 2"),
        ([TWICE], None),
        ([TWICE, "class MultiHeadAttention(MultiHeadAttention):\n    pass"], None),
        ([TWICE, "class Helper: pass\nclass Helper: pass"], None),
    ],
)
def test_a_name_of_the_contract_that_is_defined_twice_is_said(cells: list[str], said: str | None) -> None:
    source = sources.joined([Part(name=f"cell {number}", text=text) for number, text in enumerate(cells, 1)])
    graded = dataclasses.replace(FAILED, kata="mha", notes=[])
    asked = f"'MultiHeadAttention' is defined in {said}. The last one is graded. Delete the others."

    assert source.located(graded).notes == ([asked] if said else [])
    assert source.located(dataclasses.replace(graded, stopped_by="line 3, ValueError: x")).notes == []


def test_cells_that_are_no_python_stay_so_that_python_says_where(tmp_path: Path) -> None:
    wrong = "def f(x  # is this right?\n    return x\n"
    source = sources.read(written(tmp_path, code("x = 1"), code(wrong)))

    assert wrong in source.code.decode()


def test_a_cell_that_is_no_python_and_defines_nothing_is_left_out_and_said(tmp_path: Path) -> None:
    newer = "for name in names:\n    print(f'{'a' + name)"
    source = sources.read(written(tmp_path, code("x = 1"), code(newer)))

    assert "x = 1" in source.code.decode()
    assert "names" not in source.code.decode()
    assert source.notes == ("Left out, because it is no valid Python here: cell 2, line 2.",)


@pytest.mark.parametrize(
    ("name", "beside", "left_out"),
    [("show_samples", "class A: pass", True), ("show_samples", "x = 1", False), ("mask_of", "class A: pass", False)],
)
def test_functions_of_a_cell_that_is_no_python_are_left_out_beside_a_class_unless_they_may_be_meant(
    name: str, beside: str, left_out: bool, tmp_path: Path
) -> None:
    source = sources.read(written(tmp_path, code(beside), code(f"def {name}(x):\n    print(f'{{'a' + x)")))

    assert (f"def {name}" not in source.code.decode()) == left_out
    assert bool(source.notes) == left_out


@pytest.mark.parametrize(
    "old",
    [
        {
            "worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\n", "y = 2"]}]}],
            "nbformat": 3,
            "metadata": {},
        },
        {"cells": [{"cell_type": "code", "code": "x = 1\ny = 2"}], "nbformat": 1},
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])  # what a pipe on Windows puts before it
def test_a_notebook_of_an_old_format_from_standard_input_is_read(old: dict[str, object], mark: bytes) -> None:
    data = mark + json.dumps(old).encode()

    assert b"# cell 1\nx = 1\ny = 2\n" in sources.of_bytes(data, "-").code


def test_large_outputs_do_not_matter(tmp_path: Path) -> None:
    cell = code("x = 1")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "a" * 50_000_000}]
    source = sources.read(written(tmp_path, cell))

    assert source.code.endswith(b"# cell 1\nx = 1\n")


def test_too_large_outputs_are_said_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "mha.ipynb"
    with file.open("wb") as written:
        written.truncate(sources.MOST_NOTEBOOK_BYTES + 1)
    with pytest.raises(UsageError, match=r"mha\.ipynb' has 100,000,001 bytes") as raised:
        sources.read(file)

    assert raised.value.next_step == "Clear its outputs in Jupyter (Edit, Clear Outputs of All Cells), and save it"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"{", "it is not valid JSON"),
        (b"[" * 200_000, "it is not valid JSON"),
        (b"\xff\xfe{}", "it is not valid JSON"),
        (b"[]", "it has no cells"),
        (b'{"nbformat": 4}', "it has no cells"),
        (b'{"cells": 3, "worksheets": [{}, 7, {"cells": null}]}', "it has no cells"),
        (b'{"cells": []}', "has no code in it"),
        (
            b'{"cells": [7, null, {"cell_type": "code"}, {"cell_type": "code", "source": [1, " "]}]}',
            "has no code in it",
        ),
        (
            b'{"cells": [], "metadata": {"language_info": {"name": "R\\u001b"}}}',
            "is written in 'r\ufffd', not in Python",
        ),
        (json.dumps({"cells": [code("x = 1\n" * 200_000)]}).encode(), "an attempt has at most 1,000,000"),
    ],
)
def test_a_bad_notebook_is_said_in_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "mha.ipynb"
    file.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        sources.read(file)

    assert said in raised.value.what
    assert raised.value.what.count(". ") == 0
    assert "mha.ipynb" in raised.value.what
