"""Tier 0, which is for one's own code, and tier 2: what holds in each, and exactly what is open in the first."""

from __future__ import annotations

import pytest

from attn_kata.engine import isolation

ONLY_ESSENTIAL = True


def test_withstands_in_a_jail(attack, withstands):
    if isolation.probe().highest_tier < 2:
        pytest.skip("this system has no namespaces for us")
    report = withstands(attack, tier=2)

    assert report.isolation.tier in (1, 2)


def test_practice_withstands_all_but_what_is_said_to_be_open(attack, withstands, practice):
    report = withstands(attack, tier=0, configurations=tuple(practice))

    assert report.isolation.tier == 0
