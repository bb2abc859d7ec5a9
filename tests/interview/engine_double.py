"""An engine that grades nothing: what holds stands in the source. And an attempt made of what must not get through."""

from __future__ import annotations

import re
import threading

from attn_kata.report.model import Finding, Isolation, Report

from .conftest import RIGHT

CORE = ("output_shape", "values", "gradients", "float32")
EDGE = ("large_scores", "half_precision")

EVIL = b'''"""</pre><script>alert(1)</script> <img src=http://evil.example/x>
\x1b[31mred\x1b]0;title\x07 {{ 7 * 7 }} {% raw %} ]]> -->"""
# ``` ```` | pipe | [link](http://evil.example) \xe2\x80\xae\xff
def scaled_dot_product_attention(q, k, v):
    print("<b>&amp;")
    return v
'''


class FakeEngine:
    """Holds or fails properties by what stands in the source: `# holds: values` and, not tried, `# skips: gradients`.

    What begins with `def broken(` is not Python.
    """

    def __init__(self) -> None:
        self.graded: list[bytes] = []
        self.prints = "<script>printed</script>\x1b[31m"

    def grade(self, slug, source, *, attempt, seed=0, diagnose=True, **rest):
        self.graded.append(source)
        broken = source.startswith(b"def broken(")
        found = re.search(rb"# holds: ([\w, ]*)", source)
        holds = (
            set(found[1].decode().strip().split(", "))
            if found
            else {*CORE, *EDGE}
            if source == RIGHT
            else {"output_shape"}
        )
        skips = re.search(rb"# skips: ([\w, ]*)", source)
        untried = set(skips[1].decode().strip().split(", ")) if skips else set()
        findings = [
            Finding(
                property=name,
                claim=f"{name} <i>claim</i>",
                tier="core" if name in CORE else "edge",
                outcome="skipped" if name in untried else "passed" if name in holds else "failed",
                message=None if name in holds else "out[0] is <script>1</script>\x1b[2J, expected 2",
                look_at=None,
                case=None,
                needs=[],
                example=None,
                seconds=0.1,
            )
            for name in (*CORE, *EDGE)
        ]
        return Report(
            kata=slug,
            attempt=attempt,
            outcome="ungraded" if broken else "passed" if holds >= set(CORE) else "failed",
            seed=seed,
            findings=[] if broken else findings,
            diagnosis=[],
            ungraded_because="it is not Python" if broken else None,
            attempt_output=self.prints,
            isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
            seconds={"total": 1.0, "load": 0.5, "properties": 0.4, "diagnosis": 0.0},
            versions={"attn_kata": "0", "torch": "0", "python": "0"},
        )


class SlowEngine(FakeEngine):
    """Grades only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.may.set()
        self.begun = threading.Event()

    def grade(self, *args, **rest):
        self.begun.set()
        assert self.may.wait(20)
        return super().grade(*args, **rest)

    def cancel(self) -> None:
        self.may.set()
