"""What an attempt says steers no face: no terminal, page, reader of XML, nor the log of a build, which takes commands too."""

from __future__ import annotations

import json
import re
import xml.dom.minidom

import pytest

from attn_kata.report.formats import FORMATS, render
from attn_kata.report.model import Report

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COMMAND = re.compile(r"^\s*::[a-z-]+(?: [^:]*)?::|##\[|##vso\[")  # of a build's log, white space before it or not
HOSTILE = r"""
import torch

SAID = (
    "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202eon\r::error file=PWNED.py,line=1::on\n::set-output name=x::on\n:\x1b[0m:error::on\n"
    + "a" * 60 + "::add-mask::on ##[group]on ##vso[task.complete]\n<script>PWNED</script><img src=x>]]>&on; [red]on[/] \u2028"
)
print(SAID + "\ud800\x00")


class Odd(Exception):
    pass


Odd.__name__ = Odd.__qualname__ = "W\x1b[2J\n::error::on<b>"


def scaled_dot_product_attention(q, k, v):
    print(SAID)
    HOW
"""
WAYS = {
    "in an exception": "raise Odd(SAID)",
    "in an operation's name": """
    with torch.autograd.profiler.record_function("x::" + SAID + "scaled_dot_product"):
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v""",
    "in a class's name": "return type(SAID[:60], (), {'__module__': SAID[:60]})()",
}


@pytest.fixture(scope="module", params=WAYS)
def report(request, start) -> Report:
    source = HOSTILE.replace("HOW", WAYS[request.param]).encode()
    told: Report = start(1).grade("sdpa", source, attempt="\x1b[2J::error::on.py", diagnose=False)
    return told


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_that_an_attempt_says_steers_a_face(report, name):
    shown = render(report, name, source=HOSTILE.encode())
    ours = re.compile(r"^::(?:error|warning|notice|group|endgroup)(?: file=\S*,?| title=| ::|::)")
    commands = [
        line for line in shown.splitlines() if COMMAND.search(line) and not (name == "github" and ours.match(line))
    ]

    assert report.outcome == "failed"
    assert "PWNED" in report.attempt_output
    assert CONTROL.search(shown) is None
    if name not in ("json", "gradescope", "html"):  # those are one line, and a page is no log
        assert commands == []
    if name == "html":
        assert "<script>PWNED" not in shown
        assert "<img src=x" not in shown
    if name == "junit":
        xml.dom.minidom.parseString(shown)
    if name in ("json", "gradescope"):
        json.loads(shown)
    if name == "github":
        assert not any(line.startswith("::error file=PWNED") for line in shown.splitlines())
