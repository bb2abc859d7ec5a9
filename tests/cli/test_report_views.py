"""The report in the terminal and as JSON, from values alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import attn_kata.report
from attn_kata.report import folded, terminal
from attn_kata.report.ascii import in_ascii
from attn_kata.report.formats import FORMATS, render
from attn_kata.report.matrices import picture
from attn_kata.report.model import Diagnosis, Example, Finding, Isolation, NamedMistake, Report
from attn_kata.report.plain import plain

SCHEMA = json.loads((Path(attn_kata.report.__file__).parent / "report.schema.json").read_text("utf-8"))

HOSTILE = "\x1b[2J\x1b]0;title\x07[bold red]x[/bold red] \x00\x08\x9b31m\u202eabc\ud800 ]]> </script>\r\tend"


def finding(name: str, outcome: str, **changes: object) -> Finding:
    known: dict[str, object] = {
        "claim": "Output at position i does not depend on keys or values after i.",
        "tier": "core",
        "message": None,
        "look_at": None,
        "case": None,
        "needs": [],
        "example": None,
        "seconds": 0.01,
    }
    return Finding(property=name, outcome=outcome, **{**known, **changes})  # type: ignore[arg-type]


EXAMPLE = Example(
    what="out[0, 1]",
    rows="query",
    columns="value feature",
    expected=[[0.1, -0.2], [1.5, None], [0.3, 0.25]],
    got=[[0.1, -0.2], [1.4, None], [0.9, 0.25]],
)
MISTAKE = NamedMistake(
    id="scale.embed_dim",
    title="Scores divided by the square root of embed_dim",
    explanation="you divided by √64 = √embed_dim; the contract divides by √16 = √head_dim",
    question="over how many terms does one dot product sum?",
    line=31,
    source_line="    scores = q @ k.transpose(-2, -1) / math.sqrt(self.embed_dim)",
)
FAILED = Report(
    kata="mha",
    attempt="mha.py",
    outcome="failed",
    seed=0,
    findings=[
        finding("output_shape", "passed"),
        finding(
            "no_future_leak",
            "failed",
            message="out[0, 1, 2, 0] is -0.0858, expected -0.6111 (24 of 36 differ)",
            case={"B": 2, "H": 3, "Tq": 5, "Tk": 5, "D": 2},
            look_at="whether masked scores become -inf before the softmax, rather than 0 after it",
            example=EXAMPLE,
        ),
        finding("gradients", "errored", message="raised RuntimeError: boom, line 12 in forward"),
        finding("values", "skipped", needs=["no_future_leak", "output_shape"]),
        finding("half_precision", "failed", tier="edge", message="raised RuntimeError"),
        finding("large_scores", "passed", tier="edge"),
    ],
    diagnosis=[Diagnosis(mistakes=[MISTAKE])],
    ungraded_because=None,
    attempt_output="hello\n" * 3,
    isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
    seconds={"total": 1.93, "load": 1.1, "properties": 0.5, "diagnosis": 0.1},
    versions={"attn_kata": "0.1.0", "torch": "2.4", "python": "3.11"},
)
PASSED = dataclasses.replace(
    FAILED, outcome="passed", diagnosis=[], findings=[finding("values", "passed"), finding("shape", "passed")]
)
UNGRADED = dataclasses.replace(
    FAILED, outcome="ungraded", diagnosis=[], findings=[], ungraded_because="it is not Python in line 3"
)
NOT_WRITTEN = dataclasses.replace(FAILED, not_written=True, diagnosis=[], attempt_output="")

TERMINAL = """\
FAILED  mha  mha.py  1.9 s
1 of 4 core properties holds, 1 failed, 1 errored, 1 not tried; 1 of 2 beyond
the bar (reported, never decides)

Diagnosis

This mistake gives exactly the numbers of your code:

  Scores divided by the square root of embed_dim  (scale.embed_dim)
    you divided by √64 = √embed_dim; the contract divides by √16 = √head_dim
    line 31:  scores = q @ k.transpose(-2, -1) / math.sqrt(self.embed_dim)
    ask yourself: over how many terms does one dot product sum?

FAIL   no_future_leak
       Output at position i does not depend on keys or values after i.
       B=2 H=3 Tq=5 Tk=5 D=2
       out[0, 1, 2, 0] is -0.0858, expected -0.6111 (24 of 36 differ)
       look at whether masked scores become -inf before the softmax, rather than
       0 after it

    out[0, 1]   (down: query, across: value feature)
    expected         got              difference
    0.1000 -0.2000   0.1000 -0.2000         · ·
    1.5000 nan/inf   1.4000 nan/inf   -0.1000 ·
    0.3000  0.2500   0.9000  0.2500   +0.6000 ·

ERROR  gradients
       Output at position i does not depend on keys or values after i.
       raised RuntimeError: boom, line 12 in forward

SKIP   values  (needs no_future_leak, which does not hold)
PASS   output_shape

Beyond the bar (never decides)

FAIL   half_precision
       Output at position i does not depend on keys or values after i.
       raised RuntimeError

PASS   large_scores

Printed by your code

  hello   (3 times)

At the top: Scores divided by the square root of embed_dim. More: attn-kata
explain scale.embed_dim
Next: change it, then attn-kata grade mha.py (stuck: attn-kata hint mha)
"""


def test_the_whole_page_of_a_failed_attempt():
    assert terminal.render(FAILED, width=80) == TERMINAL


def test_a_pass_is_short_and_leads_on():
    page = terminal.render(PASSED, width=80)

    assert page.startswith("PASSED  mha  mha.py  1.9 s   all 2 core properties hold\n")
    assert "attn-kata solution mha" in page.splitlines()[-1]


def test_an_ungraded_attempt_says_why():
    page = terminal.render(UNGRADED, width=80)

    assert page.startswith("UNGRADED  mha  mha.py  1.9 s\n\nNot graded: it is not Python in line 3\n")
    assert "FAIL" not in page


def test_an_untouched_stub_is_told_kindly_and_has_no_findings():
    page = terminal.render(NOT_WRITTEN, width=80)

    assert page.startswith("NOT WRITTEN YET  mha  mha.py")
    assert "FAIL" not in page


def test_mistakes_that_act_together_and_sets_that_cannot_be_told_apart_are_said_so():
    pair = dataclasses.replace(FAILED, diagnosis=[Diagnosis(mistakes=[MISTAKE, MISTAKE])])
    ties = dataclasses.replace(FAILED, diagnosis=[Diagnosis(mistakes=[MISTAKE]), Diagnosis(mistakes=[MISTAKE])])

    assert "These 2 mistakes together give exactly" in terminal.render(pair, width=80)
    assert "It is one of them:" in terminal.render(ties, width=80)


def test_a_mistake_that_is_only_seen_is_not_said_to_be_one_of_several():
    """`q @ k.T` raised, so no number could be explained, and "something else is wrong as well" was not true."""
    seen = dataclasses.replace(FAILED, explained=False, diagnosis=[Diagnosis(mistakes=[MISTAKE])] * 2)

    said = "Seen in your code. There may be other mistakes: fix this first, then grade\nagain.\n"
    assert said in terminal.render(seen, width=80)
    assert "then grade again.%0A" in render(seen, "github")


def test_weights_are_drawn_as_shades_too():
    weights = Example(what="weights", rows="query", columns="key", expected=[[1.0, 0.0]], got=[[0.5, 0.5]])
    page = terminal.render(
        dataclasses.replace(FAILED, findings=[finding("weights", "failed", example=weights)]), width=80
    )

    assert "██         ▒▒▒▒" in page


def test_what_the_attempt_attends_to_is_drawn_below_the_diagnosis():
    weights = Example(what="the weights", rows="query", columns="key", expected=[[1.0, 0.0]], got=[[0.5, 0.5]])
    page = terminal.render(dataclasses.replace(FAILED, pictures=[weights]), width=80)

    assert page.index("ask yourself") < page.index("What your code attends to") < page.index("FAIL ")


def test_less_isolation_than_the_default_is_said_in_one_line():
    bare = dataclasses.replace(FAILED, isolation=Isolation(tier=0, landlock=0, seccomp=False, notes=["No Landlock."]))

    assert "Isolation: tier 0, for your own code only. No Landlock." in terminal.render(bare, width=80)
    assert "Isolation" not in terminal.render(FAILED, width=80)


@pytest.mark.parametrize("width", [50, 80, 110])
def test_no_line_is_wider_than_the_terminal(width):
    for report in (FAILED, PASSED, UNGRADED, NOT_WRITTEN):
        assert max(map(len, terminal.render(report, width=width).splitlines())) <= width


def test_colour_changes_no_word():
    import re

    coloured = terminal.render(FAILED, width=80, color=True)

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == TERMINAL.split()


def hostile(value: object) -> object:
    """`value` with every free text in it replaced by a hostile one."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(item) for item in value]
    if isinstance(value, dict):
        return {key: hostile(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {"outcome", "tier", "kata", "id", "versions"}
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return dataclasses.replace(
            value, **{name: item if name in kept else hostile(item) for name, item in fields.items()}
        )
    return value


@pytest.mark.parametrize("report", [FAILED, PASSED, UNGRADED, NOT_WRITTEN], ids=lambda report: report.outcome)
@pytest.mark.parametrize("form", FORMATS)
def test_nothing_of_the_attempt_moves_the_cursor_or_breaks_the_page(form, report):
    page = render(hostile(report), form)  # type: ignore[arg-type]

    assert all(letter == "\n" or letter.isprintable() for letter in page)
    page.encode()


def test_markup_of_the_attempt_is_shown_as_text():
    assert "[bold red]x[/bold red]" in terminal.render(hostile(UNGRADED), width=80)  # type: ignore[arg-type]


def test_plain_text_keeps_its_lines_and_loses_what_cannot_be_seen():
    assert plain("a\tb\r\nc\x1b[31m\x07d\u200be\xa0f") == "a    b\ncde f"


@pytest.mark.parametrize("report", [FAILED, PASSED, UNGRADED, NOT_WRITTEN], ids=lambda report: report.outcome)
def test_the_json_report_keeps_to_its_schema(report):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    body = json.loads(render(report, "json"))

    assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(body)] == []
    assert body["schema"] == 1
    assert Report.from_dict(body) == report


def test_the_schema_knows_no_other_keys():
    jsonschema = pytest.importorskip("jsonschema")
    body = json.loads(render(FAILED, "json"))

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**body, "extra": 1}, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({key: value for key, value in body.items() if key != "notes"}, SCHEMA)


def test_numbers_that_json_does_not_know_become_null():
    report = dataclasses.replace(FAILED, seconds={"total": float("nan")})

    assert json.loads(render(report, "json"))["seconds"]["total"] is None


# What leads, and what is said of a diagnosis ------------------------------------------------------------------------------

READY_MADE = finding(
    "from_scratch",
    "failed",
    message="calls F.softmax (line 4), which is ready-made; the contract asks you to write it yourself",
)
RAISED = finding("mask", "failed", message="raised TypeError: no, line 3 in forward", line=3)


def with_findings(*findings: Finding, **changes: object) -> Report:
    return dataclasses.replace(FAILED, findings=list(findings), attempt_output="", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", [terminal.render, folded.render], ids=["full", "folded"])
def test_a_ready_made_operation_comes_before_a_mistake_in_what_was_written(page):
    text = page(with_findings(finding("values", "failed"), READY_MADE))

    assert text.index("from_scratch") < text.index("scale.embed_dim")
    assert text.count("from_scratch") == 1


def test_an_exception_comes_before_wrong_numbers_where_nothing_is_diagnosed():
    wrong = finding("values", "failed", message="out[0] is 1, expected 2")

    text = folded.render(with_findings(wrong, RAISED, diagnosis=[]), source=b"def forward():\n    x\n    no()\n")
    assert "FAIL   mask" in text
    assert "> 3      no()" in text or "> 3  no()" in text
    assert "FAIL   values" in folded.render(with_findings(wrong, RAISED))


def test_a_mistake_that_gives_no_number_is_only_seen():
    assert "This mistake was seen in your code:" in terminal.render(dataclasses.replace(FAILED, reproduced=False))


def test_what_a_mistake_does_not_explain_is_said_with_it():
    text = " ".join(terminal.render(dataclasses.replace(FAILED, unexplained=["output_shape"])).split())

    assert "exactly the numbers of your code. Something else breaks output_shape:" in text


def test_a_picture_of_what_are_no_weights_is_not_called_so():
    other = dataclasses.replace(EXAMPLE, what="what reaches the output")

    text = terminal.render(dataclasses.replace(FAILED, pictures=[other]))
    assert "What reaches your output" in text
    assert "attends to" not in text


def test_in_ascii_signs_blocks_and_names_still_say_something():
    weights = Example(what="the weights", rows="query", columns="key", expected=[[1.0, 0.5]], got=[[0.3, 0.0]])
    page = terminal.render(dataclasses.replace(FAILED, pictures=[weights], attempt="mañana.py"))
    text = in_ascii(page)

    assert text.isascii()
    assert "?" not in text.replace("sum?", "")
    assert "you divided by sqrt 64 = sqrt embed_dim" in text
    assert "    ##++" in text  # █ and ▒
    assert "ma\\xf1ana.py" in text


# The short report ---------------------------------------------------------------------------------------------------------

SOURCE = b"import math\n" + b"x = 1\n" * 29 + b"scores = q @ k / math.sqrt(self.embed_dim)\n" + b"y = 2\n" * 5
FOLDED = """\
FAILED  mha  mha.py  1.9 s   1 of 4 core properties holds

This mistake gives exactly the numbers of your code:
  Scores divided by the square root of embed_dim  (scale.embed_dim)
    you divided by √64 = √embed_dim; the contract divides by √16 = √head_dim
    29  x = 1
    30  x = 1
  > 31  scores = q @ k / math.sqrt(self.embed_dim)
    32  y = 2
    33  y = 2
    ask yourself: over how many terms does one dot product sum?

FAIL   no_future_leak  Output at position i does not depend on keys or values
       after i.
       B=2 H=3 Tq=5 Tk=5 D=2   out[0, 1, 2, 0] is -0.0858, expected -0.6111 (24
       of 36 differ)
    out[0, 1]   (down: query, across: value feature)
    expected         got              difference
    0.1000 -0.2000   0.1000 -0.2000         · ·
    1.5000 nan/inf   1.4000 nan/inf   -0.1000 ·
    0.3000  0.2500   0.9000  0.2500   +0.6000 ·
1 more fails, 1 not tried: attn-kata grade mha.py --full
Next: change it, then attn-kata grade mha.py (stuck: attn-kata hint mha)
"""


def test_the_short_page_of_a_failed_attempt():
    assert folded.render(dataclasses.replace(FAILED, attempt_output=""), source=SOURCE) == FOLDED
    assert len(FOLDED.splitlines()) <= 24


@pytest.mark.parametrize("report", [PASSED, UNGRADED, NOT_WRITTEN], ids=lambda report: report.outcome)
def test_where_nothing_fails_the_short_page_is_the_whole_one(report):
    assert folded.render(report) == terminal.render(report)


def test_more_code_is_left_out_before_a_second_screen_is_needed():
    tall = dataclasses.replace(EXAMPLE, expected=EXAMPLE.expected * 3, got=EXAMPLE.got * 3)
    text = folded.render(
        with_findings(finding("values", "failed", message="out[0] is 1, expected 2", example=tall)), source=SOURCE
    )

    assert len(text.splitlines()) <= 24
    assert "> 31  scores" in text
    assert "33  y" not in text


@pytest.mark.parametrize("width", [50, 60, 80])
def test_a_picture_is_cut_at_whole_columns_and_its_heading_not_at_all(width):
    wide = Example(
        what="the weights of the first head",
        rows="query",
        columns="key of the context",
        expected=[[None] * 12] * 3,
        got=[[-0.123] * 12] * 3,
    )
    drawn = picture(wide, width - 4)

    assert max(map(len, drawn)) <= width - 4
    assert "of 12 columns)" in " ".join(drawn)
    assert "nan/" not in {word for line in drawn for word in line.split()}


def test_eight_numbers_that_are_not_finite_fit_eighty_columns():
    wide = Example(what="out", rows="query", columns="feature", expected=[[1.0] * 8], got=[[None] * 8])

    assert max(map(len, picture(wide, 76))) <= 76
    assert " ".join(["nan/inf"] * 8) in "\n".join(picture(wide, 76))
