"""One engine, many gradings: verdicts, deaths, cancelling, and that nothing is left of any of them."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from attn_kata import catalog, specimens
from attn_kata.engine.client import Engine, EngineFault, GradingCancelled
from attn_kata.report.model import Report

LOOP = "import time\ndef scaled_dot_product_attention(q, k, v):\n    while True: time.sleep(1)\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def grade(engine: Engine, source: str | bytes, slug: str = "sdpa", **asked: object) -> Report:
    source = source.encode() if isinstance(source, str) else source
    return engine.grade(slug, source, attempt=f"{slug}.py", **{"diagnose": False, "call_seconds": 1.0, **asked})


def messages(report: Report) -> dict[str, str | None]:
    return {finding.property: finding.message for finding in report.findings if finding.outcome == "errored"}


def without_times(report: Report) -> dict[str, object]:
    told = report.to_dict()
    told.pop("seconds")
    for finding in told["findings"]:
        finding.pop("seconds")
    return told


def test_a_right_attempt_passes(warm, reference):
    report = grade(warm, reference)

    assert report.outcome == "passed"
    assert {"properties", "diagnosis", "load", "total"} == set(report.seconds)


def test_a_wrong_one_fails_with_numbers(warm, right):
    report = grade(warm, right.replace("-0.5", "-1.0"))

    assert report.outcome == "failed"
    assert any("expected" in (finding.message or "") for finding in report.findings)


PRINTS = """
import random
import torch

print(random.random(), torch.rand(1).item())
"""


def test_one_seed_gives_one_report(warm, right):
    source = PRINTS + right.replace("-0.5", "-1.0").replace(
        "return", "print(q.sum().item(), random.random())\n    return"
    )
    first, second = (without_times(grade(warm, source, seed=5)) for _ in range(2))

    assert first == second
    assert len(first["attempt_output"].split()) > 4
    assert without_times(grade(warm, source, seed=6)) != first


@pytest.mark.usefixtures("ready_engines")
def test_one_seed_gives_one_report_in_two_engines(right):
    source = PRINTS + right.replace("-0.5", "-1.0")
    random.seed()
    told = []
    for _ in range(2):
        with Engine() as engine:
            told.append(without_times(grade(engine, source, seed=5, diagnose=True)))

    assert told[0] == told[1]


def has_a_grader_ready(engine: Engine) -> bool:
    """Whether a child of the engine's, the template, has one of its own."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(child.children() for child in psutil.Process(engine._process.pid).children())
    return False


@pytest.mark.usefixtures("ready_engines")
@pytest.mark.skipif(sys.platform != "linux", reason="only a forking engine makes a grader ready ahead")
@pytest.mark.parametrize(
    "wrong", ["dropout_always", "mask_lost", "first_call_only", "returns_tuple", "heads_not_checked"]
)
def test_a_grader_that_stood_ready_tells_what_one_that_did_not_tells(wrong, eventually):
    """It asks ahead of time, and so asks a wrong attempt more: what that draws and prints is not to change the report."""
    kata = catalog.find("mha")
    source = specimens.find(kata.folder, f"wrong/{wrong}").source()
    with Engine() as engine:
        cold = without_times(grade(engine, source, slug="mha", diagnose=True))
        eventually(lambda: has_a_grader_ready(engine), within=30)
        warm = without_times(grade(engine, source, slug="mha", diagnose=True))

    assert cold["outcome"] == "failed"
    assert warm == cold


def graders(engine: Engine) -> list[int]:
    """The process ids of the template's children."""
    found = []
    for child in psutil.Process(engine._process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # an attempt's process, which ends just now
            found += [one.pid for one in child.children()]
    return found


@linux
@pytest.mark.usefixtures("ready_engines")
def test_a_grader_grades_again_and_tells_what_a_fresh_one_tells_but_not_after_a_death(right, eventually):
    wrong, crash = right.replace("-0.5", "-1.0"), right.replace("return", "import os; os.abort()  #")
    printing = PRINTS + wrong
    with Engine() as engine:
        fresh = without_times(grade(engine, printing, diagnose=True))
        eventually(lambda: has_a_grader_ready(engine), within=30)
        grade(engine, right)
        kept = graders(engine)
        grade(engine, "import nothing_of_this_name\n")
        grade(engine, right, properties=("output_shape",))
        again = without_times(grade(engine, printing, diagnose=True))
        assert graders(engine) == kept

        grade(engine, crash, properties=("output_shape",))
        eventually(lambda: graders(engine) and not set(graders(engine)) & set(kept), within=30)
        after = without_times(grade(engine, printing, diagnose=True))

    assert fresh["outcome"] == "failed"
    assert again == after == fresh


# ------------------------------------------------------------------------------------------------------------ deaths


@pytest.mark.parametrize(
    ("death", "said"),
    [
        ("while True: pass", "no answer within 1 s"),
        ("import ctypes; ctypes.string_at(0)", "it crashed (SIGSEGV)"),
        ("import os; os.abort()", "it crashed (SIGABRT)"),
        ("import os; os._exit(0)", "it ended its process (exit status 0)"),
        ("import os; os._exit(3)", "it ended its process (exit status 3)"),
        ("bytearray(1 << 40)", "it ran out of memory"),
        ("torch.empty(1 << 40)", "it ran out of memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "it was ended by SIGTERM"),
    ],
)
def test_a_death_in_a_call_is_an_error_with_its_reason_and_the_next_property_gets_a_fresh_process(
    warm, right, death, said
):
    dying = right.replace("    return", f"    if q.dtype == torch.float16:\n        {death}\n    return")
    report = grade(warm, "import torch\n" + dying)

    assert messages(report) == {"half_precision": said}
    assert report.outcome == "passed"  # half precision is beyond the bar
    assert [finding.outcome for finding in report.findings].count("passed") == len(report.findings) - 1


@pytest.mark.parametrize("kind", ["warm", pytest.param("spawning", marks=linux)])
def test_deaths_are_told_alike_by_every_kind_of_engine(request, kind, right):
    engine = request.getfixturevalue(kind)
    dying = right.replace(
        "    return",
        "    if q.dtype == torch.float16: ctypes.string_at(0)\n"
        "    while q.dtype == torch.float32 and q.abs().max() > 50: pass\n"
        "    if q.dtype == torch.float32 and q.shape[-1] == 7: os._exit(3)\n"
        "    return",
    )
    report = grade(
        engine,
        "import ctypes, os, torch\nprint('loaded')\n" + dying,
        properties=("half_precision", "large_scores", "float32"),
    )

    assert messages(report) == {
        "float32": "it ended its process (exit status 3)",
        "large_scores": "no answer within 1 s",
        "half_precision": "it crashed (SIGSEGV)",
    }
    assert report.attempt_output == "loaded\n" * 3


def test_after_three_deaths_the_rest_is_skipped_and_the_report_failed(warm, right):
    dying = right.replace(
        "    return",
        "    if not q.is_contiguous() or q.dtype == torch.float16: os._exit(1)\n"
        "    if q.dtype == torch.float32 and q.abs().max() > 50: os._exit(1)\n"
        "    return",
    )
    report = grade(warm, "import os, torch\n" + dying)
    outcomes = [finding.outcome for finding in report.findings]

    assert report.outcome == "failed"
    assert outcomes.count("errored") == 3
    assert any("died 3 times" in (finding.message or "") for finding in report.findings if finding.outcome == "skipped")


@pytest.mark.parametrize(
    ("source", "because"),
    [
        ("while True: pass", "while it was imported: no answer within 1 s"),
        ("import os; os._exit(0)", "while it was imported: it ended its process (exit status 0)"),
        ("import ctypes; ctypes.string_at(0)", "while it was imported: it crashed (SIGSEGV)"),
        ("bytearray(1 << 40)", "while it was imported: it ran out of memory"),
        ("def f(: pass", "it is not Python"),
        ("# 注意力\n".encode("gbk"), "it is not Python (line 1 is not UTF-8: save the file as UTF-8)"),
        ("x = 1\n\n\n# é".encode("latin-1"), "it is not Python (line 4 is not UTF-8: save the file as UTF-8)"),
        ("x = 1".encode("utf-16"), "it is not Python (line 1 is not UTF-8: save the file as UTF-8)"),
        ("x = 1\0", "it is not Python"),
        ("# coding: nonsense\nx = 1", "it is not Python"),
        ("", 'it has no "scaled_dot_product_attention"; it defines no function or class'),
        ("def scaled_dot_attention(q): pass", "is scaled_dot_attention meant to be it?"),
        ("import no_such_package", "it imports something that is not here"),
        (
            "from my_masks import causal",
            "An attempt can import what is installed. `grade` and `watch` also read the files beside it",
        ),
        ("from .my_masks import causal", "An attempt can import what is installed"),
        ("1 / 0", "it raises while it is imported: raised ZeroDivisionError"),
    ],
)
def test_a_death_at_import_is_ungraded_with_its_reason(warm, source, because):
    report = grade(warm, source)

    assert report.outcome == "ungraded"
    assert because in (report.ungraded_because or "")
    assert report.findings == []


def test_a_source_that_names_its_encoding_is_graded(warm, right):
    assert grade(warm, f"# coding: gbk\n# 注意力\n{right}".encode("gbk")).outcome == "passed"


@pytest.mark.parametrize(
    ("demo", "why"),
    [
        ("scaled_dot_product_attention(1)", "line {line}, TypeError: "),
        ("assert False, 'no\\x1b[2Jgood'", "line {line}, AssertionError: nogood"),
        ("def again():\n    raise KeyError('x')\nagain()", "line {after}, KeyError: 'x'"),
    ],
)
def test_a_demo_that_fails_after_the_definitions_is_a_note(warm, right, demo, why):
    report = grade(warm, f"{right}\n{demo}\n")
    line = right.count("\n") + 2

    assert report.outcome == "passed"
    assert (report.stopped_by or "").startswith(why.format(line=line, after=line + 2))
    assert [note for note in report.notes if "ends early with an exception" in note and str(report.stopped_by) in note]


@pytest.mark.parametrize("demo", ["raise SystemExit", "raise KeyboardInterrupt", "bytearray(1 << 40)"])
def test_a_demo_that_ends_its_process_is_ungraded(warm, right, demo):
    assert grade(warm, f"{right}\n{demo}\n").outcome == "ungraded"


def test_a_demo_that_fails_before_the_definitions_is_ungraded(warm, right):
    assert grade(warm, f"1 / 0\n{right}").outcome == "ungraded"


def test_a_source_of_a_megabyte_and_bytes_that_are_no_text_are_told_apart(warm, right):
    assert grade(warm, right + "#" * (1 << 20), properties=("output_shape",)).outcome == "passed"
    assert grade(warm, b"\xff\xfe\x00" * 100).outcome == "ungraded"


@pytest.mark.parametrize("filler", ["x = 0\n", "y = [1 / 2, 3 ** 4]\n", "# softmax(\n"])
def test_a_source_of_a_hundred_pages_is_diagnosed_in_no_more_time(warm, right, filler):
    source = right.replace("-0.5", "-1.0") + filler * (900_000 // len(filler))
    report = grade(warm, source, diagnose=True, call_seconds=10.0)

    assert report.outcome == "failed"
    assert report.diagnosis
    assert report.seconds["diagnosis"] < 5


def test_the_whole_grading_has_a_deadline(warm, right):
    slow = "import time\n" + right.replace("    return", "    time.sleep(0.3)\n    return")
    began = time.monotonic()
    report = grade(warm, slow, timeout=2.0)

    assert time.monotonic() - began < 10
    assert report.outcome == "failed"
    assert any("ran out of time" in (finding.message or "") for finding in report.findings)


# -------------------------------------------------------------------------------------------- cancelling and faults


def assert_cancelling_raises(engine: Engine) -> None:
    engine.cancel()
    threading.Timer(0.5, engine.cancel).start()
    began = time.monotonic()
    with pytest.raises(GradingCancelled):
        grade(engine, LOOP, call_seconds=30.0)
    assert time.monotonic() - began < 8
    engine.cancel()


def assert_a_fault_of_ours_is_told(engine: Engine, reference: bytes) -> None:
    with pytest.raises(EngineFault) as caught:
        engine.grade("no_such_kata", reference, attempt="x.py")
    assert "Traceback" in caught.value.details


def assert_a_dead_grader_is_a_fault(engine: Engine, is_grader: Callable[[psutil.Process], bool]) -> None:
    def kill_the_grader() -> None:
        for child in filter(is_grader, psutil.Process(engine._process.pid).children()):
            child.kill()  # a template among them: it may be the one that forked the grader child

    threading.Timer(0.7, kill_the_grader).start()
    with pytest.raises(EngineFault, match="grader process"):
        grade(engine, LOOP, call_seconds=20.0)


def test_a_cancelled_grading_raises_the_engine_goes_on_and_cancelling_nothing_does_nothing(warm, reference):
    assert_cancelling_raises(warm)

    assert grade(warm, reference, properties=("output_shape",)).outcome == "passed"


def test_a_grading_cancelled_at_any_moment_is_cancelled_or_reported(warm, reference):
    for moment in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        timer = threading.Timer(moment, warm.cancel)
        timer.start()
        with contextlib.suppress(GradingCancelled):
            assert grade(warm, reference, properties=("values",)).outcome == "passed"
        timer.join()

    assert grade(warm, reference, properties=("values",)).outcome == "passed"


def test_a_fault_of_ours_is_told_with_its_traceback_and_the_next_grading_works(warm, reference):
    assert_a_fault_of_ours_is_told(warm, reference)

    assert grade(warm, reference, properties=("output_shape",)).outcome == "passed"


def test_a_call_without_end_in_what_never_decides_leaves_the_verdict(warm, right):
    slow = "import time\n" + right.replace("    return", "    time.sleep(60 * bool(q.abs().max() > 90))\n    return", 1)
    report = grade(warm, slow, timeout=6.0)

    assert report.outcome == "passed"
    assert "errored" in {finding.outcome for finding in report.findings if finding.tier == "edge"}


@linux
def test_a_grader_child_that_dies_is_a_fault_and_the_next_grading_works(warm, reference):
    # The attempt child leads a session of its own.
    assert_a_dead_grader_is_a_fault(warm, lambda child: os.getsid(child.pid) != child.pid)

    assert grade(warm, reference, properties=("output_shape",)).outcome == "passed"


@linux
def test_a_spawning_engine_cancels_tells_faults_and_grades_on(spawning, reference):
    """It is asked for a right attempt in the end alone: every grading has processes of its own, each of which loads torch."""
    assert_cancelling_raises(spawning)
    assert_a_fault_of_ours_is_told(spawning, reference)
    assert_a_dead_grader_is_a_fault(spawning, lambda child: "grader" in child.cmdline())

    assert grade(spawning, reference).outcome == "passed"


@linux
def test_a_spawning_engine_goes_on_after_a_grading_that_was_cancelled_while_torch_was_loading(reference):
    with Engine(_role="spawning") as engine:
        threading.Timer(0.2, engine.cancel).start()
        with pytest.raises(GradingCancelled):
            grade(engine, reference)
        assert not engine._ready  # it was cancelled before the first grader had loaded torch

        assert [grade(engine, reference, properties=("values",)).outcome for _ in range(2)] == ["passed"] * 2


@linux
@pytest.mark.usefixtures("ready_engines")
@pytest.mark.parametrize("role", ["engine", "spawning"])
def test_an_engine_that_is_killed_is_a_fault_and_its_children_go_with_it(role, gone):
    with Engine(_role=role) as engine:
        engine.wait_until_ready()
        folder, seen = engine._folder, []

        def kill() -> None:
            seen.extend(psutil.Process(engine._process.pid).children(recursive=True))
            engine._process.kill()

        threading.Timer(0.7, kill).start()
        began = time.monotonic()
        with pytest.raises(EngineFault, match="ended without an answer"):
            grade(engine, LOOP, call_seconds=20.0)
        assert time.monotonic() - began < 5
        with pytest.raises(EngineFault):
            grade(engine, LOOP)
        gone(seen, within=1.0 if role == "engine" else 10.0)  # a spawned one may be loading torch, and sees it then

    assert len(seen) >= 2
    assert not folder.exists()


def test_an_engine_that_cannot_start_says_so_with_its_log(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so was not found')\n")
    monkeypatch.setattr("attn_kata.engine.client._import_folders", lambda: [str(tmp_path)])
    with Engine() as engine, pytest.raises(EngineFault) as caught:
        engine.wait_until_ready()

    assert "ImportError: libtorch.so was not found" in caught.value.details


# ------------------------------------------------------------------------------------------------------ nothing left


@linux
@pytest.mark.usefixtures("ready_engines")
def test_forty_gradings_leave_memory_descriptors_processes_and_files_as_they_were(reference, right, eventually):
    crash = right.replace("return", "import os; os.abort()  #")
    with Engine() as engine:
        process, own = psutil.Process(engine._process.pid), psutil.Process()
        for source in (reference, crash, reference):
            grade(engine, source, properties=("output_shape",))
        eventually(lambda: _at_rest(process))
        before = process.memory_info().rss, _descriptors(process), own.num_fds()
        for number in range(40):
            grade(engine, crash if number % 4 == 0 else reference, properties=("output_shape",))
        eventually(lambda: _at_rest(process) and _descriptors(process) == before[1])
        after = process.memory_info().rss, _descriptors(process), own.num_fds()
        files = sorted(path.name for path in engine._folder.iterdir())

    assert after[0] - before[0] < 8 << 20
    assert after[1:] == before[1:]
    assert [name.partition("-")[0] for name in files] == ["attempt", "engine.log"]
    assert not engine._folder.exists()


def _at_rest(process: psutil.Process) -> bool:
    """Whether there is what stands ready for the next grading, and nothing else: template, grader child, attempt child."""
    ready = [child.pid for child in process.children(recursive=True)]
    time.sleep(0.3)
    return len(ready) == 3 and [child.pid for child in process.children(recursive=True)] == ready


def _descriptors(process: psutil.Process) -> int:
    try:
        return process.num_fds()
    except psutil.AccessDenied:  # the engine's memory is private, and this is an ordinary user's test
        return 0


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="the engine's memory is private: only root may measure it")
def test_a_grading_takes_at_most_half_as_much_memory_again_as_importing_torch(reference):
    import subprocess

    script = "import sys, torch; print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as alone:
        alone.stdout.readline()
        torch_alone = _together([alone.pid])
        alone.stdin.close()

    peak, over = 0, threading.Event()
    with Engine() as engine:
        process = psutil.Process(engine._process.pid)

        def watch() -> None:
            nonlocal peak
            while not over.is_set():
                try:
                    pids = [process.pid, *(child.pid for child in process.children(recursive=True))]
                except psutil.NoSuchProcess:
                    return
                peak = max(peak, _together(pids))
                time.sleep(0.005)

        watching = threading.Thread(target=watch)
        watching.start()
        grade(engine, reference, diagnose=True, call_seconds=10.0)
        over.set()
        watching.join()

    print(f"peak {peak / 1024:.0f} MiB, torch alone {torch_alone / 1024:.0f} MiB: {peak / torch_alone:.2f}")
    assert peak <= 1.5 * torch_alone


def _together(pids: list[int]) -> int:
    """KiB that processes of one family take: pages that they share are counted once, whoever else maps the same files."""
    own, files = 0, 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue
        sizes = {name: int(size.split()[0]) for name, size in (line.split(":") for line in lines)}
        own += sizes["Pss_Anon"]  # shared through fork alone
        files = max(files, sizes["Rss"] - sizes["Anonymous"])
    return own + files
