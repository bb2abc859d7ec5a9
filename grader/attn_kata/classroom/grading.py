"""Grades one submission of a class on a pool of engines. It is the same on this machine and on every worker of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attn_kata.classroom.setting import LEAST_TIER, Setting

if TYPE_CHECKING:
    from attn_kata.engine.pool import EnginePool


def grade(pool: EnginePool, setting: Setting, code: bytes, name: str) -> dict[str, Any]:
    """The report as plain values. Raises EngineFault and TooWeak."""
    report = pool.grade(
        setting.kata,
        code,
        attempt=name,
        seed=setting.seed,
        timeout=setting.timeout,
        least_tier=LEAST_TIER,
        reads=bool(setting.flags),
        flags=setting.flags,
    )
    return report.to_dict()
