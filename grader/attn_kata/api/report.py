"""A report that shows itself: as HTML in a notebook, as text everywhere else."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Any

from attn_kata.report import model

_WIDTH = 88  # columns; the output of a cell has about a hundred


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(model.Report):
    """What one grading found.

    `passed` says whether every core property holds, `mistakes` has the ids of the mistakes that were found, `findings` the
    outcome of every property, and `diagnosis` the mistakes with their lines. `to_dict()` is the JSON report. A notebook shows
    a report as HTML; `print(report)` gives text.
    """

    source: bytes = b""  # what was graded

    @classmethod
    def of(cls, report: model.Report, source: bytes) -> Report:
        """The report of a grading, with the source that was graded."""
        return cls(**{field.name: getattr(report, field.name) for field in fields(report)}, source=source)

    @property
    def mistakes(self) -> list[str]:
        """The ids of the mistakes that were found. Where several cannot be told apart, all of them."""
        return list(dict.fromkeys(mistake.id for found in self.diagnosis for mistake in found.mistakes))

    def to_dict(self) -> dict[str, Any]:
        """The JSON report, `"schema": 1`."""
        body = super().to_dict()
        del body["source"]
        return body

    def __repr__(self) -> str:
        state = random.getstate()
        try:
            from attn_kata.report import terminal  # rich draws a random number when it is imported
        finally:
            random.setstate(state)
        return terminal.render(self, width=_WIDTH, advice=False).rstrip("\n")

    def _repr_html_(self) -> str:
        from attn_kata.report import html

        return html.cell(self, source=self.source)
