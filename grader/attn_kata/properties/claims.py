"""The mark of a hidden test: its claim, whether it decides, which properties must hold before it, and its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.report.model import Tier

Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True, kw_only=True)
class Property:
    """A named behaviour. Its test is run once for each case, smallest first, until one fails."""

    name: str
    claim: str
    tier: Tier
    look_at: str | None
    needs: tuple[str, ...]
    cases: tuple[Sizes | Drawn | None, ...]
    blocks: tuple[str, ...] = ()


def claims(
    claim: str,
    *,
    look_at: str | None = None,
    needs: str | Iterable[str] = (),
    tier: Tier = "core",
    cases: Iterable[Sizes | Drawn] = (),
    blocks: Iterable[str] = (),
) -> Callable[[Test], Test]:
    """Mark `test_<name>` as the test of the property <name>.

        @claims("The output is one tensor of shape (B, T, E).", look_at="how the heads are merged", cases=SIZES)
        def test_output_shape(attempt, sizes): ...

    claim: one sentence that a person understands without the test.
    look_at: completes "look at …". It never gives the fix.
    needs: properties that must hold first. If one of them does not hold, this property is skipped.
    tier: "core" properties decide, "edge" properties inform.
    cases: the sizes for the test, smallest first. The test stops at the first case that fails.
    blocks: words in the names of torch operations that the contract forbids. This property is tested before all others, and
        after it these operations are blocked.
    """

    def mark(test: Test) -> Test:
        test.property = Property(  # type: ignore[attr-defined]
            name=test.__name__.removeprefix("test_"),
            claim=claim,
            tier=tier,
            look_at=look_at,
            needs=(needs,) if isinstance(needs, str) else tuple(needs),
            cases=tuple(cases) or (None,),
            blocks=tuple(blocks),
        )
        return test

    return mark
