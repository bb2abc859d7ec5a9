"""The hidden tests of a kata, the functions that pytest would collect, and one case of one of them.

Whoever runs hidden tests loads them here: a grading, the mutants of `authoring`. pytest itself collects the same functions
where an author calls it (see `pytest_fixtures`). It is not asked here: importing it and collecting one file with it takes a
tenth as long as importing torch.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
import types
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.properties.claims import Property
from attn_kata.properties.failures import AttemptDied, NoAnswer, PropertyFailed
from attn_kata.properties.handle import Handle, number_for

Case = tuple[int, str, int]  # a seed, a property and the place among its cases
Begin = Callable[[Case | None], None]  # is told of each case before it is run, and of the end with None

FIXTURES = ("attempt", "reference", "sizes")  # what a hidden test may ask for by its arguments' names


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
    """The hidden tests in the file at `path`, in its order: its functions `test...`. Raises HiddenTestFault."""
    found = [
        hidden_test(name, value)
        for name, value in vars(_module(path)).items()
        if name.startswith("test") and callable(value)
    ]
    if not found:
        raise HiddenTestFault(f"there is no hidden test in {path.name}")
    return found


def _module(path: Path) -> types.ModuleType:
    """The file as a module, which is never kept for others: another kata's file may have its name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # while it runs: dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        at = f" (line {lines[-1]})" if lines else ""  # a SyntaxError says its line itself
        said = " ".join("".join(traceback.format_exception_only(error)).split())
        raise HiddenTestFault(f"it cannot be imported: {said}{at}") from error
    finally:
        sys.modules.pop(path.stem, None)
        if before is not None:
            sys.modules[path.stem] = before
    return module


def seed_case(seed: int, tested: Property, place: int) -> None:
    """Seed torch for one case, so that a case's numbers depend on nothing but the seed and the case."""
    case = _number(seed, tested, place)
    # Not torch.manual_seed, which takes 2 ms: it formats three stacks for the sake of devices that are not used here.
    torch.default_generator.manual_seed(case)
    number_for(case)


def _number(seed: int, tested: Property, place: int) -> int:
    """A number of 32 bits for one case."""
    return zlib.crc32(f"{seed} {tested.name} {place}".encode())
