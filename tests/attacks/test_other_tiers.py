"""Tier 0, which is for one's own code, and tier 2: what holds in each, and exactly what is open in the first."""

from __future__ import annotations

import time

import pytest

from attn_kata import sandbox

ONLY_ESSENTIAL = True


def test_withstands_in_a_jail(attack, withstands):
    if sandbox.probe().highest_tier < 2:
        pytest.skip("this system has no namespaces for us")
    report = withstands(attack, tier=2)

    assert report.isolation.tier in (1, 2)


CHAIN = """
import os
import time

until = time.monotonic() + 4
if os.fork() == 0:
    os.setsid()
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)
    os._exit(0)


def scaled_dot_product_attention(q, k, v):
    return v
"""


def test_a_chain_of_processes_that_outruns_the_engine_does_not_hold_it(start):
    engine = start(0)
    began = time.monotonic()
    report = engine.grade("sdpa", CHAIN.encode(), attempt="chain.py", properties=("output_shape",), diagnose=False)

    assert time.monotonic() - began < 8
    assert report.outcome == "failed"
    time.sleep(max(0.0, 5 - (time.monotonic() - began)))  # it is left to end by itself
    assert engine.grade("sdpa", CHAIN.partition("if os.fork")[0].encode(), attempt="x.py").outcome == "ungraded"


def test_practice_withstands_all_but_what_is_said_to_be_open(attack, withstands, practice):
    report = withstands(attack, tier=0, configurations=tuple(practice))

    assert report.isolation.tier == 0
