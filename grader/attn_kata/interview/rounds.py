"""The rounds of an interview as values: what is done in each, on which kata, for how long.

write    a kata, from its stub                               a file that is graded
grow     the next kata, in the same file as the round before a file that is graded, for the katas before it as well
hunt     a file with mistakes in it: find and mend them      a file that is graded
review   a colleague's attempt: mark lines, name mistakes    answers
napkin   numbers without code                                answers
derive   formulas on paper, in words                         answers, which the candidate ticks
talk     questions about the code; off the clock             answers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from attn_kata import catalog

RoundKind = Literal["write", "grow", "hunt", "review", "napkin", "derive", "talk"]
KINDS: tuple[RoundKind, ...] = get_args(RoundKind)
_WRITTEN: tuple[RoundKind, ...] = ("write", "grow", "hunt")

# What a candidate is told about a round, for people to read. JSON has the kinds.
DOES: Mapping[RoundKind, str] = {
    "write": "write it",
    "grow": "the next part, in the same file",
    "hunt": "find and mend the mistakes in a file",
    "review": "read a colleague's code",
    "napkin": "numbers without code",
    "derive": "a derivation, without code",
    "talk": "questions about your code",
}


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round. A talk has no kata (an empty text) and no minutes: it is about the katas before it."""

    kata: str
    minutes: float
    kind: RoundKind = "write"

    @property
    def written(self) -> bool:
        """Whether the round has a file, which is graded."""
        return self.kind in _WRITTEN

    @property
    def timed(self) -> bool:
        """Whether the clock runs in this round."""
        return self.kind != "talk"

    @property
    def title(self) -> str:
        """`Causal mask`, `Hunt: Causal mask`, `Questions`."""
        if not self.kata:
            return "Questions"
        title = catalog.find(self.kata).title
        return title if self.kind in ("write", "grow") else f"{self.kind.capitalize()}: {title}"


TALK = Round(kind="talk", kata="", minutes=0.0)


def chain(rounds: Sequence[Round], place: int) -> tuple[int, ...]:
    """The places of the rounds whose code stands in the file of the round at `place`, that one last."""
    made = [place]
    while rounds[made[0]].kind == "grow":
        made.insert(0, next(before for before in reversed(range(made[0])) if rounds[before].written))
    return tuple(made)
