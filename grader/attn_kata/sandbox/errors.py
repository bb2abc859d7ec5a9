"""The error of a layer that is required and cannot be put in force."""

from __future__ import annotations


class IsolationError(Exception):
    """A layer failed that the tier requires and this system has. The attempt must not run."""
