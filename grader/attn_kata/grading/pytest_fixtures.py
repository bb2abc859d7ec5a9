"""The fixtures of hidden tests when pytest itself runs them, in this process, and how their failures are told.

`pytest_plugin` registers this module when pytest collects the first hidden test. A test asks the same as in a grading, with
the numbers of seed 0, and each case is a test of its own. Nothing is blocked, and what a property needs is not looked at.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from attn_kata import catalog
from attn_kata.grading.hidden_tests import HiddenTest, HiddenTestFault, hidden_test
from attn_kata.grading.local import local_handle
from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.properties.claims import Property
from attn_kata.properties.failures import AttemptRaised, PropertyFailed
from attn_kata.properties.handle import Handle

SEED = 0


@functools.cache
def _reference(folder: Path) -> Handle:
    kata = catalog.load(folder)
    return local_handle(kata.solution, kata.returns)


@pytest.fixture(scope="module")
def reference(request: pytest.FixtureRequest) -> Handle:
    """The handle on the kata's reference."""
    return _reference(request.path.parent)


@pytest.fixture(scope="module")
def attempt(request: pytest.FixtureRequest) -> Handle:
    """The handle on the file given by --attempt, or on the reference."""
    given = request.config.getoption("--attempt")  # pytest_plugin has looked that the file is there
    path = None if given is None else request.config.invocation_params.dir / str(given)
    kata = catalog.load(request.path.parent)
    try:
        return local_handle(path or kata.solution, kata.returns)
    except Exception as error:
        if path is None or request.config.option.fulltrace:
            raise
        pytest.fail(f"{path.name} raises while it is imported: {type(error).__name__}: {error}", pytrace=False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case of the property."""
    tested = _property(metafunc.function)
    if tested is not None and "sizes" in metafunc.fixturenames:
        metafunc.parametrize("sizes", tested.cases, ids=map(_id, tested.cases))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which fixtures there are, before one that is not there is looked for."""
    try:
        for item in items:
            _hidden_test(item)
    except HiddenTestFault as fault:
        raise pytest.UsageError(str(fault)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run one case as a grading does."""
    test = _hidden_test(pyfuncitem)
    if test is None:
        return None
    given: dict[str, Any] = pyfuncitem.funcargs
    place = test.property.cases.index(given["sizes"]) if "sizes" in test.asks else 0
    ours = _reference(pyfuncitem.path.parent)
    test.run(place, given.get("attempt", ours), given.get("reference", ours), seed=SEED)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Tell a property that does not hold in the words of a report, and not by a traceback."""
    report = yield
    failure = None if call.excinfo is None else call.excinfo.value
    test = _hidden_test(item)
    options = item.config.option
    if test is not None and isinstance(failure, PropertyFailed) and not (options.fulltrace or options.usepdb):
        sizes = getattr(item, "funcargs", {}).get("sizes")
        if isinstance(sizes, Drawn):
            sizes = test.sizes(test.property.cases.index(sizes), SEED)
        report.longrepr = _told(test.property, sizes, failure)
    return report


def _told(tested: Property, sizes: Sizes | Drawn | None, failure: PropertyFailed) -> str:
    not_written = isinstance(failure, AttemptRaised) and failure.not_written
    message = "not written yet: it raises NotImplementedError" if not_written else failure.message
    lines = [tested.claim, f"    {sizes}   {message}" if sizes is not None else f"    {message}"]
    if tested.look_at is not None and not isinstance(failure, AttemptRaised):
        lines.append(f"    look at {tested.look_at}")
    return "\n".join(lines)


def _hidden_test(item: pytest.Item) -> HiddenTest | None:
    """The hidden test of an item, or None for any other test. Raises HiddenTestFault."""
    if isinstance(item, pytest.Function) and _property(item.function) is not None:
        return hidden_test(item.originalname, item.function)
    return None


def _property(function: Any) -> Property | None:
    marked = getattr(function, "property", None)
    return marked if isinstance(marked, Property) else None


def _id(sizes: Sizes | Drawn | None) -> str:
    if isinstance(sizes, Drawn):
        return "drawn"
    return "all" if sizes is None else "-".join(f"{name}={value}" for name, value in sizes.as_dict().items())
