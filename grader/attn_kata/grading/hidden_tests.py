"""The hidden tests of a kata, as pytest collects them, and one case of one of them.

Whoever runs hidden tests loads them here: a grading, the mutants of `authoring`. pytest itself collects the same functions
where an author calls it (see `pytest_fixtures`).
"""

from __future__ import annotations

import inspect
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.properties.claims import Property
from attn_kata.properties.failures import AttemptDied, NoAnswer, PropertyFailed
from attn_kata.properties.handle import Handle, number_for

Case = tuple[int, str, int]  # a seed, a property and the place among its cases
Begin = Callable[[Case | None], None]  # is told of each case before it is run, and of the end with None

FIXTURES = ("attempt", "reference", "sizes")  # what a hidden test may ask for by its arguments' names

# pytest's own plugins that are of no use for collecting; each costs time at start-up.
_WITHOUT = (
    "cacheprovider",
    "capture",
    "debugging",
    "doctest",
    "faulthandler",
    "junitxml",
    "logging",
    "legacypath",
    "monkeypatch",
    "pastebin",
    "pytester_assertions",
    "recwarn",
    "setuponly",
    "setupplan",
    "skipping",
    "stepwise",
    "terminal",
    "terminalprogress",
    "threadexception",
    "tmpdir",
    "unittest",
    "unraisableexception",
    "warnings",
    "subtests",
)


class HiddenTestFault(Exception):
    """A hidden test failed in a way that no attempt can cause: a fault of ours."""


@dataclass(frozen=True, kw_only=True)
class HiddenTest:
    """A hidden test: the function, the property that it is of, and which of FIXTURES it asks for."""

    call: Callable[..., None]
    property: Property
    asks: frozenset[str]

    def run(self, place: int, attempt: Handle, reference: Handle, *, seed: int, begin: Begin = lambda _: None) -> None:
        """Run the case at `place`, with numbers that depend on nothing but the seed, the property and the place.

        Raises PropertyFailed and AttemptDied; anything else is a fault of the test's own, which the reference meets too.
        """
        try:
            self._call(place, attempt, reference, seed, begin)
        except (PropertyFailed, AttemptDied):
            raise
        except Exception as error:
            # A shape that no test can index, say. It is the attempt's fault where the test takes the reference's output.
            try:
                self._call(place, reference, reference, seed, begin)
            except PropertyFailed:
                pass
            except Exception:
                raise error from None
            said = f"its output cannot be used as the contract says ({type(error).__name__}: {error})"
            raise NoAnswer(said) from error

    def sizes(self, place: int, seed: int) -> Sizes | None:
        """The sizes of the case at `place`, drawn if the case says so."""
        case = self.property.cases[place]
        return case.draw(_number(seed, self.property, place)) if isinstance(case, Drawn) else case

    def _call(self, place: int, attempt: Handle, reference: Handle, seed: int, begin: Begin) -> None:
        begin((seed, self.property.name, place))
        seed_case(seed, self.property, place)
        given = {"attempt": attempt, "reference": reference, "sizes": self.sizes(place, seed)}
        self.call(**{name: value for name, value in given.items() if name in self.asks})


def hidden_test(name: str, function: Callable[..., None]) -> HiddenTest:
    """The hidden test `name` (`test_<property>`). Raises HiddenTestFault where it has no claim or an unknown fixture."""
    marked = getattr(function, "property", None)
    if not isinstance(marked, Property):
        raise HiddenTestFault(f"{name} has no claim: write @claims(...) above it")
    asks = frozenset(inspect.signature(function).parameters)
    if asks - set(FIXTURES):
        unknown = ", ".join(sorted(asks - set(FIXTURES)))
        raise HiddenTestFault(f"{name} asks for {unknown}; a hidden test can ask for {', '.join(FIXTURES)}")
    return HiddenTest(call=function, property=replace(marked, name=name.removeprefix("test_")), asks=asks)


def load(path: Path) -> list[HiddenTest]:
    """The hidden tests in the file at `path`, in its order. No configuration, plugin or conftest of the machine's is read.

    Raises HiddenTestFault.
    """
    collector = _Collector()
    arguments = [
        str(path),
        "-c",
        os.devnull,
        "--rootdir",
        str(path.parent),
        "--noconftest",
        "--assert=plain",
        "--import-mode=importlib",
    ]
    for plugin in _WITHOUT:
        arguments += ["-p", f"no:{plugin}"]
    with _no_plugins():
        code = pytest.main(arguments, plugins=[collector])
    # pytest would take the module that is there for another file of the same name, and for a newer one.
    if getattr(sys.modules.get(path.stem), "__file__", None) == str(path):
        del sys.modules[path.stem]
    if collector.faults:
        raise HiddenTestFault(collector.faults[0])
    if not collector.tests:
        raise HiddenTestFault(f"pytest found no hidden test in {path.name} (it ended with {code!r})")
    return collector.tests


@contextmanager
def _no_plugins() -> Iterator[None]:
    """Keep pytest from loading the plugins that are installed."""
    name = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class _Collector:
    """pytest's plugin that keeps what was collected. pytest runs none of it."""

    def __init__(self) -> None:
        self.tests: list[HiddenTest] = []
        self.faults: list[str] = []

    def pytest_collection_finish(self, session: Any) -> None:
        for item in session.items:
            try:
                self.tests.append(hidden_test(item.name, item.obj))
            except HiddenTestFault as fault:
                self.faults.append(str(fault))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.faults.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_runtestloop(self) -> bool:
        """In the place of pytest's own loop."""
        return True


def seed_case(seed: int, tested: Property, place: int) -> None:
    """Seed torch for one case, so that a case's numbers depend on nothing but the seed and the case."""
    case = _number(seed, tested, place)
    # Not torch.manual_seed, which takes 2 ms: it formats three stacks for the sake of devices that are not used here.
    torch.default_generator.manual_seed(case)
    number_for(case)


def _number(seed: int, tested: Property, place: int) -> int:
    """A number of 32 bits for one case."""
    return zlib.crc32(f"{seed} {tested.name} {place}".encode())
