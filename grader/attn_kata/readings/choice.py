"""What a search ends with: the reading that was chosen, or what was tried."""

from __future__ import annotations

from dataclasses import dataclass

from attn_kata.properties.failures import Raised
from attn_kata.readings.asking.limits import Limits
from attn_kata.readings.candidates.masks import Said
from attn_kata.readings.reading import Reading


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A mistake that is certain, in what the reading leaves out, so that no property asks it.

    ids: it is one of these. property: the one that does not hold by it. line: where it is, or 0.
    """

    ids: tuple[str, ...]
    property: str
    words: str
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The reading that was chosen, and what there is to say of the choice."""

    reading: Reading
    adapter: str
    limits: Limits
    mistakes: int = 0  # that the reading needs, as far as it was looked for
    settled: bool = True  # whether words or names say what the mask means
    hint: Said | None = None  # what words say of the mask otherwise
    candidates: tuple[str, ...] = ()  # other definitions that look like an attention
    ties: tuple[Reading, ...] = ()  # others that need as many mistakes
    layout_open: bool = False  # whether only its answers could tell how its inputs are laid out, and it gave none
    untried: tuple[str, ...] = ()  # parameters of the call that take a cache, and are left out
    switch_untried: tuple[str, ...] = ()  # flags that switch a mask of its own on, and are left off
    masks_untried: tuple[str, ...] = ()  # other inputs of the call, masks most of all, that are left out
    dropout_untried: str = ""  # the parameter of a function that takes a dropout, where it is left out
    notes: tuple[str, ...] = ()  # what else is to be said of the code, in sentences
    beside: tuple[Beside, ...] = ()  # what is wrong in what the reading leaves out
    without_mask: Raised | None = None  # what it raises without a mask, which its call allows to leave out
    raised_by_heads: Raised | None = None  # what it raises for several heads, where it is right with one
    mask_untried: str = ""  # the parameter of the call that takes a mask, where it is left out
    further: bool = (
        False  # whether it computes with parameters that the kata does not have, and no set of mistakes explains it
    )
    doubt: str = ""  # why a failure would be no verdict: nothing explains it, and names and sizes do not bear it out


@dataclass(frozen=True, kw_only=True)
class NotRead:
    """No reading was found. `tried` says what was tried, in sentences."""

    tried: tuple[str, ...]
    candidates: tuple[str, ...] = ()
    nothing: bool = False  # whether nothing in the source looks like an attention
