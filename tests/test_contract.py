"""`prompt.md` is read strictly, and an interview is told what it does not mark as silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from attn_kata import contract
from attn_kata.errors import KataFileError

GOOD = """\
# A kata

Write `f(x, mask)`. The lines of a paragraph are one text for an interview, which may wrap them anew
as it needs.

    x       (B, T)
    result  (B, T)

<!-- silent: what True means -->
Mask: True = may attend.
<!-- /silent -->

Two rules:
- an item of a list that is so long that an interview, with its narrow lines, has to wrap it once;
<!-- silent -->
- nobody asks for this;
<!-- /silent -->
- the last.

<!-- silent: what True means -->
Everything is True.
<!-- /silent -->
<!-- silent: which sizes there are -->
Any.
<!-- /silent -->
"""


def read(folder: Path, text: str) -> contract.Contract:
    (folder / "prompt.md").write_text(text, encoding="utf-8")
    return contract.load(folder / "prompt.md")


def test_the_text_is_everything_but_the_title_and_the_marks(tmp_path):
    made = read(tmp_path, GOOD)

    lines = [line for line in GOOD.splitlines()[2:] if "<!--" not in line]
    assert made.title == "A kata"
    assert made.text == "\n".join(lines).replace("\n\n\n", "\n\n")
    assert made.silent == ("what True means", "which sizes there are")


def test_what_is_told_leaves_the_marked_parts_out_and_fits_eighty_columns(tmp_path):
    made = read(tmp_path, GOOD)

    assert (
        made.told
        == """\
Write `f(x, mask)`. The lines of a paragraph are one text for an interview,
which may wrap them anew as it needs.

    x       (B, T)
    result  (B, T)

Two rules:
- an item of a list that is so long that an interview, with its narrow lines,
  has to wrap it once;
- the last."""
    )


def test_a_line_is_not_broken_inside_of_code_nor_before_a_number_that_would_begin_a_list(tmp_path):
    filler = "word " * 15  # room for three characters more
    made = read(tmp_path, f"# A kata\n\n{filler}\n`E = embed_dim`.\n\n{filler}\nto 1. Then the rest.\n")

    assert made.told.splitlines() == [
        filler.strip(),
        "`E = embed_dim`.",
        "",
        filler.strip(),
        "to 1. Then the rest.",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# A kata\n", "", "line 1: must be the title"),
        ("# A kata\n", "## A kata\n", "line 1: must be the title"),
        ("# A kata\n", "# \n", "line 1: must be the title"),
        ("Any.", "x" * 101, "line 24: has 101 characters, and a line of the contract at most 100"),
        ("    x  ", "    x" + " " * 70, "line 6: is indented and told in the interview, so it has at most 78"),
        ("Any.", "a \\ b", "line 24: goes into a docstring"),
        ("Any.", 'a """ b', "line 24: goes into a docstring"),
        ("Any.", 'a "b"', "line 24: goes into a docstring"),
        ("Any.\n<!-- /silent -->\n", "Any.\n", "line 23: the mark is not closed by '<!-- /silent -->'"),
        ("Everything is True.\n<!-- /silent -->\n", "", "line 21: a mark is opened inside the one of line 20"),
        ("<!-- silent -->\n", "", "line 16: closes a mark that was not opened"),
        ("<!-- silent -->", "<!-- quiet -->", "line 15: '<!-- quiet -->' is no mark"),
        ("<!-- silent -->", "<!-- silent: -->", "line 15: '<!-- silent: -->' is no mark"),
        ("- the last.", "- the last. <!-- silent -->", "line 18: '- the last. <!-- silent -->' is no mark"),
        (GOOD[8:], "\n", "nothing is left that an interviewer could tell"),
    ],
)
def test_an_error_names_the_file_and_the_line(tmp_path, old, new, said):
    assert old in GOOD

    with pytest.raises(KataFileError) as wrong:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert wrong.value.what.startswith(str(tmp_path / "prompt.md"))
    assert said in wrong.value.what


def test_a_contract_that_is_missing_or_no_text_is_said(tmp_path):
    with pytest.raises(KataFileError, match="cannot be read"):
        contract.load(tmp_path / "prompt.md")
    (tmp_path / "prompt.md").write_bytes(b"# \xff")
    with pytest.raises(KataFileError, match="cannot be read"):
        contract.load(tmp_path / "prompt.md")
