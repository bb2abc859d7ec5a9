"""What has passed is looked at again: when, and what comes of it. The attacks are in tests/attacks."""

from __future__ import annotations

import time
import types
from collections.abc import Sequence

import pytest

from attn_kata import resources
from attn_kata.engine import unaided, wire, withheld
from attn_kata.properties.local import Local
from attn_kata.properties.runner import HiddenTests, with_hidden_tests
from attn_kata.report.model import Finding


def finding(name: str, outcome: str = "passed", tier: str = "core", message: str | None = None) -> Finding:
    return Finding(
        property=name, claim="", tier=tier, outcome=outcome, message=message, look_at=None, case=None, needs=[],
        example=None, seconds=0.0,
    )  # fmt: skip


HELD = ("output_shape", "values", "from_scratch", "inputs_unmodified", "own_memory")
PASSED = [finding(name) for name in HELD]


@pytest.mark.parametrize(
    ("more", "due"),
    [
        ([], True),
        ([finding("large_scores", "failed", "edge")], True),
        ([finding("gradients", "failed")], False),
        ([finding("gradients", "errored")], False),
        ([finding("gradients", "skipped")], False),
    ],
)
def test_it_is_due_where_everything_that_decides_holds(more, due):
    assert unaided.is_due(([*PASSED, *more], {})) is due


RIGHT = "import math\ndef scaled_dot_product_attention(q, k, v): return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v\n"
READY_MADE = "from torch.nn.functional import scaled_dot_product_attention\n"
LEAVES = """
import torch
def scaled_dot_product_attention(q, k, v):
    scores = torch.tensor((q @ k.mT / q.shape[-1] ** 0.5).tolist(), dtype=q.dtype)
    return scores.softmax(-1) @ v
"""
WRITES = "def scaled_dot_product_attention(q, k, v): return (q.mul_(q.shape[-1] ** -0.5) @ k.mT).softmax(-1) @ v\n"
SHARES = """
def scaled_dot_product_attention(q, k, v):
    out = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    given = max(q, k, v, key=lambda value: value.numel())
    return given.view(-1)[: out.numel()].view(out.shape).copy_(out) if given.numel() >= out.numel() else out
"""
TAKES_BACK = """
import math
calls = []
def scaled_dot_product_attention(q, k, v):
    calls.append(q)
    scale = math.sqrt(q.shape[-1]) if len(calls) > FEW else 1
    return (q @ k.mT / scale).softmax(-1) @ v
"""


class Process(Local):
    """In the place of an attempt's process, one of ours: nothing is withheld in it."""

    deaths = 0

    def __init__(self, source: str) -> None:
        namespace = types.ModuleType("attempt")
        exec(source, namespace.__dict__)
        super().__init__(namespace)

    def stop(self) -> None:
        pass

    def post(self, request: wire.Request) -> None:
        pass

    def ask_ahead(self, questions: Sequence[bytes]) -> None:
        pass


def looked(
    source: str, findings: Sequence[Finding] = PASSED, *, slug: str = "sdpa"
) -> dict[str, tuple[str, str | None]]:
    """What a second look finds in an attempt, with nothing withheld: what is not passed."""
    found = []

    def use(tests: HiddenTests) -> None:
        look = unaided.SecondLook(
            tests, resources.solutions_folder() / f"{slug}.py", lambda withhold: Process("" if withhold is None else source),
            forbidden=("scaled_dot_product", "_safe_softmax"), deadline=time.monotonic() + 60,
        )  # fmt: skip
        found.append(look.judged((list(findings), {})))

    with_hidden_tests(resources.katas_folder() / slug / f"test_{slug}.py", use)
    ((again, failures),) = found
    assert set(failures) <= {each.property for each in again if each.outcome == "failed"}
    return {each.property: (each.outcome, each.message) for each in again if each.outcome != "passed"}


def test_what_is_right_stays_so():
    assert looked(RIGHT) == {}


def test_what_is_forbidden_is_found_in_the_trace():
    ((name, (outcome, message)),) = looked(READY_MADE).items()

    assert (name, outcome) == ("from_scratch", "failed")
    assert message == unaided._NOT_SEEN.format("aten::_safe_softmax")  # what torch takes for it for these sizes


def test_numbers_that_leave_the_tensors_cannot_be_followed():
    ((name, (outcome, message)),) = looked(LEAVES).items()

    assert (name, outcome) == ("from_scratch", "errored")
    assert "could not be followed: numbers leave torch's tensors" in message


@pytest.mark.parametrize(
    "weights",
    [
        "torch.stack([(row - max(row)).exp() / (row - max(row)).exp().sum() for row in scores.flatten(0, -2)]).view_as(scores)",
        "torch.softmax(scores - max(scores.flatten().tolist()), dim=-1)",
        "(scores - scores.max().item()).exp().softmax(0) if scores.max() < -1e9 else scores.softmax(-1)",
    ],
)
def test_what_depends_on_a_comparison_or_reads_a_shift_is_followed_near_what_is_asked(weights):
    source = RIGHT.replace("import math", "import math, torch").replace("return ", "scores = ").replace(
        ".softmax(-1) @ v", f"; return ({weights}) @ v"
    )  # fmt: skip

    assert looked(source, [*PASSED, finding("strong_scores"), finding("gradients")]) == {}


def test_an_operation_that_is_not_carried_out_is_named():
    message = looked(RIGHT.replace(" @ v\n", " @ v.to_sparse().to_dense()\n"))["from_scratch"][1]

    assert "could not be followed: aten._to_sparse.default is not among" in message


def test_values_that_are_wrong_now_fail_what_forbids():
    assert looked(TAKES_BACK.replace("FEW", "1000")) == {"from_scratch": ("failed", unaided._NOT_WITHOUT)}


def test_everything_that_decides_is_looked_at_again():
    mild = RIGHT.replace(".softmax(-1)", ".clamp(-20, 20).softmax(-1)")  # as if something else had served the strong ones

    assert looked(mild) == {}
    assert looked(mild, [*PASSED, finding("strong_scores")]) == {"from_scratch": ("failed", unaided._NOT_WITHOUT)}
    assert looked(mild, [*PASSED, finding("strong_scores", "failed", "edge")]).keys() == {"strong_scores"}
    assert looked(RIGHT, [*PASSED, finding("strong_scores"), finding("gradients")]) == {}


def test_a_changed_input_and_shared_memory_are_seen_in_the_trace():
    found = looked(WRITES)
    assert set(found) == {"inputs_unmodified"}
    assert found["inputs_unmodified"][1].startswith("tensor argument 1 was changed by the call")

    assert set(looked(SHARES)) == {"inputs_unmodified", "own_memory"}


def test_where_nothing_is_forbidden_other_numbers_are_asked_about():
    right = (resources.solutions_folder() / "split_heads.py").read_text()
    by_heart = right.replace("def merge_heads", "def honest") + "\ndef merge_heads(x): return honest(x) * 0\n"
    findings = [finding("split_values"), finding("merge_values"), finding("inputs_unmodified")]

    assert looked(right, findings, slug="split_heads") == {}
    assert looked(by_heart, findings, slug="split_heads").keys() == {"merge_values"}


def test_what_did_not_hold_is_not_asked_again():
    findings = [finding("values"), finding("from_scratch"), finding("own_memory", "failed", "edge", "as it was")]

    assert looked(SHARES, findings) == {"own_memory": ("failed", "as it was")}


def ran(source: str) -> dict:
    namespace: dict = {"Withheld": withheld.Withheld}
    code = compile(source, "attempt.py", "exec", dont_inherit=True)
    assert isinstance(code, types.CodeType)
    withheld.run(source.encode(), code, namespace)
    return namespace


def test_a_statement_that_calls_what_is_withheld_is_left_out_and_what_hangs_on_it():
    namespace = ran("one = 1\ntry:\n    raise Withheld\nexcept Exception:\n    two = 2\nassert two\nthree = one + 2\n")

    assert namespace["three"] == 3
    assert "two" not in namespace


def test_without_one_a_statement_that_raises_raises():
    with pytest.raises(NameError):
        ran("assert two\n")


def test_a_future_statement_counts_for_the_whole_of_the_source():
    namespace = ran("from __future__ import annotations\ndef f(x: NotThere): ...\n")

    assert namespace["f"].__annotations__ == {"x": "NotThere"}
