"""What a layer raises when it was promised and could not be put in force."""

from __future__ import annotations


class IsolationError(Exception):
    """A layer that the tier requires, and that this system has, failed: nothing of the attempt may run."""
