"""`results.csv` for spreadsheets, and `results.json` for programs, which `results.schema.json` beside this file describes."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from attn_kata.classroom.summary import Row, Summary
from attn_kata.report.plain import unicode
from attn_kata.report.score import shown

SCHEMA = 1
COLUMNS = (
    "student",
    "verdict",
    "score",
    "mistakes",
    "core_held",
    "core",
    "edge_held",
    "edge",
    "seconds",
    "file",
    "sha256",
    "because",
)
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
)  # what a spreadsheet runs: https://owasp.org/www-community/attacks/CSV_Injection


def as_csv(summary: Summary) -> str:
    """One row for each student, in UTF-8 with a mark at the beginning, without which Excel reads another encoding."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in summary.rows:
        cells = (
            row.student,
            row.verdict.lower(),
            "" if row.score is None else shown(row.score.points),
            " ".join(row.mistakes),
            row.core_held,
            row.core,
            row.edge_held,
            row.edge,
            f"{row.seconds:.3f}",
            row.file,
            row.sha256,
            row.because,
        )
        writer.writerow([_cell(cell) for cell in cells])
    return "\ufeff" + unicode(written.getvalue())


def _cell(value: object) -> object:
    """A value; text that a spreadsheet would run as a formula gets an apostrophe before it."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def as_json(summary: Summary) -> str:
    """The summary as JSON in ASCII."""
    body = {
        "schema": SCHEMA,
        "kata": summary.kata,
        "seed": summary.seed,
        "submissions": unicode(summary.submissions),
        "versions": summary.versions,
        "verdicts": {name.lower(): count for name, count in summary.verdicts().items()},
        "mean": None if summary.mean() is None else round(summary.mean() or 0.0, 1),
        "median": None if summary.median() is None else round(summary.median() or 0.0, 1),
        "mistakes": [
            {"id": each.id, "title": each.title, "count": each.count, "example": unicode(each.student)}
            for each in summary.mistakes
        ],
        "properties": [
            {
                "property": each.name,
                "claim": each.claim,
                "tier": each.tier,
                "held": each.held,
                "failed": each.failed,
                "skipped": each.skipped,
            }
            for each in summary.properties
        ],
        "students": [_student(row) for row in summary.rows],
        "left_out": [unicode(sentence) for sentence in summary.left_out],
    }
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


def _student(row: Row) -> dict[str, Any]:
    return {
        "student": unicode(row.student),
        "verdict": row.verdict.lower(),
        "outcome": row.outcome,
        "score": None if row.score is None else row.score.points,
        "sum": []
        if row.score is None
        else [{"what": unicode(term.what), "points": term.points} for term in row.score.terms],
        "mistakes": list(row.mistakes),
        "core_held": row.core_held,
        "core": row.core,
        "edge_held": row.edge_held,
        "edge": row.edge,
        "seconds": round(row.seconds, 3),
        "file": unicode(row.file),
        "sha256": row.sha256,
        "because": unicode(row.because),
        "page": f"students/{row.page}.html",
        "properties": row.outcomes,
    }
