"""What the operations of one call show."""

from __future__ import annotations

from dataclasses import dataclass, field

# What a line does that these mistakes do wrong. The others do what their family says: "softmax" of "softmax.query_axis".
_DOES = {"split.no_transpose": "view", "merge.no_transpose": "view", "layout.mixed_places": "view"}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A mistake, and the line that makes it."""

    id: str
    line: int

    @property
    def family(self) -> str:
        """`scale` of `scale.heads`."""
        return self.id.partition(".")[0]


@dataclass(kw_only=True)
class Flow:
    """What the operations of one call show: mistakes, and lines that are right, each as (what it does, line).

    What a line does is a mistake's family, "view" for layouts, or the id of the mistake that it does not make. A call with one
    token may show neither: there is nothing to mix.
    """

    mistakes: list[Shown] = field(default_factory=list)
    right: set[tuple[str, int]] = field(default_factory=set)

    def makes(self, id: str, line: int) -> None:
        """Note a mistake of a line."""
        self.mistakes.append(Shown(id=id, line=line))

    def denies(self, one: Shown) -> bool:
        """Whether this call shows that a line does right what another call shows it to do wrong."""
        does = _DOES.get(one.id, one.family)
        return bool({(does, one.line), (one.id, one.line)} & self.right)
