"""Which flags make no sense for a kata: heads that its contract does not have, a mask that it does not take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attn_kata.errors import UsageError
from attn_kata.readings.contract import Contract, of_kata
from attn_kata.readings.reading import Pairs, parse

# What a contract may call the same input, and by which of its inputs that is meant where it has no such name.
_SAME = (("q", "query", "x"), ("k", "key", "context", "x"), ("v", "value", "context", "x"))
_TYPED = {typed: names for names in _SAME for typed in names[:2]}
_INPUTS = (*_TYPED, "x", "context", "qkv")
# A flag that is set, or set to a value, what a contract needs for it, and what it lacks, in words.
_NEEDS: tuple[tuple[str, Callable[[Contract], bool], str], ...] = (
    ("one_group", lambda one: one.has_groups, "it has no groups of heads"),
    ("one_head", lambda one: one.has_heads and not one.has_groups, "it has no number of heads that could be 1"),
    ("one_sample", lambda one: one.is_module, "it asks for a function, which takes a batch of any size"),
    ("no_output", lambda one: one.has_heads and "o" in one.layers, "it has no heads that an output layer joins"),
    ("by_token", lambda one: one.is_module and one.is_self, "it asks for no module of one sequence, token by token"),
    ("cache", lambda one: one.is_module and one.is_self, "it asks for no module of one sequence, token by token"),
    ("chunks", lambda one: one.is_module and one.is_self, "it asks for no module of one sequence, token by token"),
    ("head_width", lambda one: one.has_heads and not one.has_groups, "it has no heads that could be wider"),
    ("narrow", lambda one: one.has_own_sizes, "it has no queries with a width of their own"),
    ("gates", lambda one: one.is_module, "it asks for a function, which has no parameters"),
    ("mlp_ratio", lambda one: one.is_block, "it has no mlp"),
    ("square", lambda one: not one.rotation, "its queries and keys are of one length by its contract"),
    ("alike", lambda one: _has_two_widths(one), "it has no second width"),
    ("mask=lengths", lambda one: not (one.builder and one.causal), "its mask has nothing to do with padding"),
    ("causal", lambda one: not (one.causal or one.is_block), "it hides later keys by its contract"),
    ("causal", lambda one: not one.rotation, "it has no keys to hide"),
    ("causal", lambda one: one.mask != "keys", "it hides keys for all queries alike"),
    (
        "hides_queries",
        lambda one: one.mask == "scores" and not one.is_cross,
        "its queries and keys are not the same tokens",
    ),
)
# A value in a list of pairs, what a contract needs for it, and why it does not fit, in words.
_VALUES_OF: tuple[tuple[str, str, Callable[[Contract], bool], str], ...] = (
    ("call", "linear", lambda _: False, "'linear' is a layer for a constructor, and no input of a call"),
    ("build", "linear", lambda one: one.is_module, "'linear' is a layer for a constructor, and a function has none"),
    ("call", "module", lambda one: not one.is_module, "'module' is for a function, and this kata asks for a class"),
)
# A flag that needs another one, and of which code: of functions, or of what takes a query and keys apart.
_WITH: tuple[tuple[str, str, str, Callable[[Contract], bool]], ...] = (
    ("joins", "dims", "dims=4", lambda one: not one.is_module),
    ("hides_queries", "square", "square=yes", lambda one: not one.is_module or one.takes_qkv),
)


def check(slug: str, folder: Path, flags: tuple[str, ...], *, reads: bool) -> None:
    """Raises UsageError for unknown flags, or such as do not fit the kata; with `reads`, where it takes its contract only."""
    if not flags and not reads:
        return
    given = parse(flags)
    contract = of_kata(folder)
    if contract is None and reads:
        raise UsageError(
            f"{slug} takes code with the names of its contract only.",
            next_step=f"The contract: attn-kata start {slug}",
        )
    if contract is None:
        return
    for _, value in _inputs(given, contract):
        known = (*contract.inputs, *["qkv"] * contract.is_self)
        if value in _INPUTS and value not in known and not _is_of_another_kind(contract):
            raise UsageError(
                f"--read '{_as_typed('call', flags)}': {slug} has no input '{value}'.",
                next_step=f"Its inputs are {', '.join(contract.inputs)}. None leaves a parameter out",
            )
    for key, value, fits, lacks in _VALUES_OF:
        pairs: Pairs = given.get(key, ())  # type: ignore[assignment]
        if value in dict(pairs).values() and not fits(contract):
            raise UsageError(
                f"--read '{_as_typed(key, flags)}' does not fit {slug}: {lacks}.",
                next_step="Give another value (attn-kata grade --read help lists them)",
            )
    asked = given.get("conventions", ())
    unknown = [one for one in asked if one not in contract.conventions]  # type: ignore[attr-defined]
    if unknown:
        raise UsageError(
            f"--read '{_as_typed('conventions', flags)}': {slug} has no convention '{unknown[0]}'.",
            next_step=f"It has {', '.join(contract.conventions)}" if contract.conventions else "Leave it out",
        )
    for flag, fits, lacks in _NEEDS:
        key, equals, value = flag.partition("=")
        is_set = given.get(key) == value if equals else bool(given.get(key))
        if is_set and not fits(contract):
            raise UsageError(
                f"--read {_as_typed(key, flags)} does not fit {slug}: {lacks}.",
                next_step="Leave it out, or name another kata with --kata (attn-kata list shows them)",
            )
    for key, other, needed, is_needed in _WITH:
        if given.get(key) and not given.get(other) and is_needed(contract):
            kind = "code with three inputs" if contract.is_module else "a function"
            raise UsageError(
                f"--read {_as_typed(key, flags)} needs --read {needed} for {kind}.",
                next_step=f"Add --read {needed}",
            )


def as_named(given: dict[str, object], contract: Contract) -> dict[str, object]:
    """The fields that flags set, with each input by the name that the contract has for it: query for q."""
    return {**given, "call": _inputs(given, contract)} if "call" in given else given


def _inputs(given: dict[str, object], contract: Contract) -> Pairs:
    call: Pairs = given.get("call", ())  # type: ignore[assignment]
    if _is_of_another_kind(contract):
        return call
    return tuple(
        (name, next((one for one in _TYPED.get(value, ()) if one in contract.inputs), value)) for name, value in call
    )


def _is_of_another_kind(contract: Contract) -> bool:
    """Whether what is called may be no attention: a rotation, or a function that builds a mask of tokens."""
    return contract.rotation or bool(contract.builder)


def _has_two_widths(contract: Contract) -> bool:
    """Whether values may be wider than keys, a context than x, or a query than keys."""
    of_function = not contract.is_module and "v" in contract.inputs
    return contract.is_cross or contract.has_own_sizes or contract.has_score or of_function


def _as_typed(key: str, flags: tuple[str, ...]) -> str:
    return next(one for one in flags if one.startswith(f"{key}="))
