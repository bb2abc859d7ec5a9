"""What the pool prepares once for its children, and when it prepares it anew."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks", allow_module_level=True)

from attn_kata import sandbox
from attn_kata.engine.attempt_pool import AttemptPool
from attn_kata.protocol.messages import Job


class Layers:
    """Stands for the sandbox: counts what was prepared and released, and is out of date when it is told to be."""

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

    monkeypatch.setattr(sandbox, "prepare", prepare)
    monkeypatch.setattr(sandbox, "release", played.released.append)
    monkeypatch.setattr(sandbox, "is_current", lambda prepared: played.current)
    return played


def job(tier: int) -> Job:
    return Job(slug="sdpa", katas="/katas", solutions="/solutions", attempt="sdpa.py", tier=tier, denied=("/answers",))


def test_the_layers_are_prepared_once_for_a_tier(layers):
    pool = AttemptPool(list)
    first = pool._prepare(job(1))

    assert pool._prepare(job(1)) is first
    assert pool._prepare(job(2)) is not first
    assert layers.prepared == [1, 2]


def test_a_package_that_was_installed_meanwhile_has_them_prepared_again(layers):
    pool = AttemptPool(list)
    first = pool._prepare(job(1))
    layers.current = False
    second = pool._prepare(job(1))

    assert second is not first
    assert layers.released == [first]
    assert pool._prepare(job(1)) is not second
