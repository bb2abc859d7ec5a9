"""What the forking engine keeps for its children, and when it makes it anew."""

from __future__ import annotations

import sys
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks", allow_module_level=True)

from attn_kata.engine.attempt_pool import Attempts


class Layers:
    """Stands for the isolation: counts what was prepared and released, and is out of date when it is told to be."""

    def __init__(self) -> None:
        self.prepared: list[int] = []
        self.released: list[object] = []
        self.current = True


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> Layers:
    played = Layers()

    def prepare(*, tier: int, denied: tuple[str, ...]) -> object:
        played.prepared.append(tier)
        return object()

    monkeypatch.setattr(isolation, "prepare", prepare)
    monkeypatch.setattr(isolation, "release", played.released.append)
    monkeypatch.setattr(isolation, "is_current", lambda prepared: played.current)
    return played


def asked(tier: int) -> dict[str, Any]:
    return {"tier": tier, "denied": ["/answers"]}


def test_the_layers_are_prepared_once_for_a_tier(layers):
    attempts = Attempts(list)
    first = attempts._prepare(asked(1))

    assert attempts._prepare(asked(1)) is first
    assert attempts._prepare(asked(2)) is not first
    assert layers.prepared == [1, 2]


def test_a_package_that_was_installed_meanwhile_has_them_prepared_again(layers):
    attempts = Attempts(list)
    first = attempts._prepare(asked(1))
    layers.current = False
    second = attempts._prepare(asked(1))

    assert second is not first
    assert layers.released == [first]
    assert attempts._prepare(asked(1)) is not second


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "it ended its process (exit status 0)"),
        (255, "it ended its process (exit status 255)"),
        (-11, "it crashed (SIGSEGV)"),
        (-6, "it crashed (SIGABRT)"),
        (-24, "it used up its CPU time (SIGXCPU)"),
        (-9, "it was killed (SIGKILL), most likely because memory ran out"),
        (-15, "it was ended by SIGTERM"),
        (-40, "it was ended by signal 40"),
    ],
)
def test_an_end_is_told_in_words(code, words):
    assert ending.in_words(code) == words
