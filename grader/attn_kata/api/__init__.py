"""The Python API: `attn_kata.grade`, `Grader`, `katas`, `explain` and `Report`. Imports no torch."""

from attn_kata.api.grading import Grader, grade
from attn_kata.api.reference import explain, katas
from attn_kata.api.report import Report

__all__ = ["Grader", "Report", "explain", "grade", "katas"]
