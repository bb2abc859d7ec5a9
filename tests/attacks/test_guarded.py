"""Tier 1, the default: every attack, and the grader's health after each."""

from __future__ import annotations


def test_withstands(attack, withstands):
    report = withstands(attack, tier=1)

    assert report.isolation.tier == 1
