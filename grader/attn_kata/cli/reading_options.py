"""The options of `grade` for code by other names: which class, how to read it, and the adapter that can be written."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from attn_kata import catalog, resources
from attn_kata.errors import UsageError, why
from attn_kata.files import printable
from attn_kata.readings import advice, contract, fitting, further, inference, origin
from attn_kata.readings.adapters import adapter
from attn_kata.readings.reading import HELP, MASKS, Reading, parse, with_flags
from attn_kata.readings.source import methods, syntax

if TYPE_CHECKING:
    from attn_kata.catalog import Kata
    from attn_kata.report.model import Report

MOST_NAMES = 6  # of definitions, in a message
MOST_OTHERS = 2  # definitions that are tried after one that could not be read, or around one that is right
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How code by other names is to be read. `flags` are KEY=VALUE; with `strict` the contract's names are asked for."""

    flags: tuple[str, ...] = ()
    strict: bool = False
    adapter: Path | None = None

    @property
    def entry(self) -> tuple[str, ...]:
        """The class or function that the flags name, or ()."""
        named = parse(self.flags).get("entry")
        return () if named is None else (str(named),)

    def nearest(self, source: bytes, named: str | None = None) -> tuple[str, str] | None:
        """The kata of a source that does not name one, or None.

        `named`: the kata that the file is called after. Then only one with heads, if that has none: as one head, code
        with heads would pass with any mistake in their split or merge. Or one of functions, for code without layers.
        """
        if self.strict:
            return None
        if named is not None:
            if not _may_be_called(source, named):
                return self.nearest(source)
            told = None if _has_heads(named) else self.nearest(source)
            return (
                told
                if told is not None and (_has_heads(told[0]) or _is_of_modules(named) > _is_of_modules(told[0]))
                else None
            )
        found = syntax.of_source(source)
        is_method = bool(self.entry) and methods.alone(source, self.entry[0]) is not None
        if self.entry and found.definitions and not is_method and found.find(self.entry[0]) is None:
            raise _no_such_entry(self.entry[0], [*(one.name for one in found.own), *methods.of(source)])
        from attn_kata import definitions

        katas = definitions.katas(source)
        by_contract = []
        for kata in katas:
            known = contract.of_kata(kata.folder)
            if known is not None:
                says = origin.is_by_contract(source, found, kata.entries, known)
            else:  # beside an attention, a function such as softmax is a part of it
                says = (
                    len(katas) == 1
                    and _may_be_called(source, kata.slug)
                    and origin.has_layers_of(source, kata.solution.read_bytes())
                )
                says = says and not origin.is_part_of_an_attention(found, kata.entries)
            by_contract += [kata] if says else []
        if not by_contract:
            return self._told(source)
        if len(by_contract) > 1 or len(katas) == 1:
            return None  # its definitions say it, or say too much
        others = " or ".join(f"--kata {kata.slug}" for kata in katas if kata not in by_contract)
        slug = by_contract[0].slug
        return slug, f"It has the names of {slug}, so it is graded as {slug}. {others} grades its other code."

    def _told(self, source: bytes) -> tuple[str, str] | None:
        """The kata that the named definition or the likeliest one looks like. Raises UsageError for a named one like none."""
        if not self.entry:
            return inference.kata_of(source)
        [name] = self.entry
        told = inference.kata_of(source, name)
        if told is None:
            raise UsageError(
                f"Nothing in '{printable(name)}' tells which kata it is.",
                next_step="Add --kata KATA to say it (the katas: attn-kata list)",
            )
        return told

    def meant(self, source: bytes, slug: str) -> str:
        """The definition of the source that is nearest to this kata, or the likeliest one; "" without any."""
        every = list(inference.katas_of(source))
        return next((name for kata, name, _ in every if kata == slug), every[0][1] if every else "")

    def others(self, source: bytes, slug: str, *, why: str) -> list[tuple[str, str, str]]:
        """Other definitions of the source that may be meant where this kata could read none: kata, name, and a sentence.

        Those that the unread one uses only where `why` it is unread is an import, or where they are whole without it: a part
        that is right says nothing of the whole, and is said to be one. Then the methods that may be an attention by themselves.
        """
        if self.strict or self.flags or advice.UNREAD not in why:
            return []
        every = list(inference.katas_of(source))
        meant = self.meant(source, slug)
        parts = further.parts_of(source, meant)
        found: dict[str, tuple[str, str, str]] = {}
        for kata, name, said in reversed(every):
            other = (
                f"{meant} could not be read as {slug}, and is not graded."
                if meant != name
                else "It could not be read so."
            )
            found |= {kata: (kata, name, f"{other} {said}")} if name not in parts else {}
        unset = advice.unset_name(why)
        lacks = advice.NOT_IMPORTED in why or unset in syntax.of_source(source).imports
        because = "needs an import that is not installed" if lacks else "could not be read"
        found |= {
            kata: (kata, name, f"{meant} {because}. Only its part {name} is graded, as {kata}.")
            for kata, name, _ in every
            if name in parts and (lacks or (parts[name] and _has_heads(kata)))
        }
        others = [one for kata, one in reversed(found.items()) if kata != slug][:MOST_OTHERS]
        if advice.NOT_FITTING.search(why):  # another kata may not tell its sizes apart
            others = [one for one in others if one[1] != meant]
        of_methods = [
            (kata, name, f"{name.partition('.')[0]} could not be read. Only its method {name} is graded, as {kata}.")
            for kata, name, _ in itertools.islice(inference.methods_of(source), MOST_OTHERS)
        ]
        return others + of_methods

    @staticmethod
    def has_more_masks(slug: str, other: str) -> bool:
        """Whether the first kata's contract has a mask, and the other's has none."""
        masks = []
        for each in (slug, other):
            known = contract.of_kata(resources.katas_folder() / each)
            masks.append(known is not None and known.place_of_mask is not None)
        return masks[0] and not masks[1]

    def blocks_around(self, source: bytes, entry: str) -> list[tuple[str, str]]:
        """The transformer blocks of the source that use this attention: kata and name."""
        return [] if self.strict or self.flags else further.blocks_around(source, entry)[:MOST_OTHERS]

    def check(self, kata: Kata) -> None:
        """Raises UsageError where the kata takes its contract only and is to be read, or where a flag does not fit it."""
        fitting.check(kata.slug, kata.folder, self.flags, reads=bool(self.flags or self.adapter))

    def write(self, report: Report, source: bytes, kata: Kata) -> str | None:
        """Write the adapter, if one was asked for. Returns what to say. Raises UsageError."""
        if self.adapter is None:
            return None
        if report.reading is None:
            return "No adapter was written: the code has the contract's names, or it could not be read."
        graded, _ = methods.taken(source, report.reading["entry"])
        text = adapter.below(graded.decode("utf-8", "replace"), _reading(report.reading, source), _contract(kata))
        try:
            with self.adapter.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(f"'{self.adapter}' exists and was not changed.", next_step="Name another file") from None
        except OSError as problem:
            raise UsageError(f"'{self.adapter}' cannot be written: {why(problem)}.") from problem
        following = f"attn-kata grade {self.adapter} --kata {kata.slug} --strict"
        return f"Your code with the adapter is in '{self.adapter}'. Next: {following}"


def _or_help(context: click.Context, _: click.Parameter, flags: tuple[str, ...]) -> tuple[str, ...]:
    """The flags; for `--read help` the keys in words instead of a grading."""
    if "help" in flags:
        click.echo(HELP)
        context.exit()
    return flags


def _no_such_entry(name: str, known: list[str]) -> UsageError:
    import difflib  # only here: a correct name does not need it

    near = difflib.get_close_matches(name, known, n=1)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    few = ", ".join(known[:MOST_NAMES]) + (", …" if len(known) > MOST_NAMES else "")
    return UsageError(
        f"The file has no class or function '{printable(name)}'.{meant}",
        next_step=f"Name one that it has: {few}",
    )


def _may_be_called(source: bytes, slug: str) -> bool:
    """Whether a function with the name of the kata's takes as many arguments as that needs; True for any other code.

    Only for a kata that knows no code by other names: others tell by their readings.
    """
    kata = catalog.find(slug)
    if contract.of_kata(kata.folder) is not None:
        return True
    theirs, ours = syntax.of_source(source), syntax.of_source(kata.solution.read_bytes())
    for name in kata.entries:
        found, asked = theirs.find(name), ours.find(name)
        if found is None or asked is None or found.is_class or asked.is_class:
            continue
        takes_any = any(one.name.startswith("*") for one in found.call)
        if not takes_any and len(found.call) < sum(one.default is None for one in asked.call):
            return False
    return True


def _is_of_modules(slug: str) -> bool:
    known = contract.of_kata(resources.katas_folder() / slug)
    return known is not None and known.is_module


def _has_heads(slug: str) -> bool:
    known = contract.of_kata(resources.katas_folder() / slug)
    return known is not None and known.has_heads


def _contract(kata: Kata) -> contract.Contract:
    found = contract.of_kata(resources.katas_folder() / kata.slug)
    assert found is not None
    return found


def _reading(described: dict[str, Any], source: bytes) -> Reading:
    """The reading that a report describes."""
    _, entry = methods.taken(source, described["entry"])
    definition = syntax.of_source(source).find(entry)
    is_class = definition is not None and definition.is_class
    empty = Reading(kata=described["kata"], entry=entry, is_class=is_class)
    return with_flags(empty, {**parse(tuple(described["flags"])), "entry": entry})


def reading_options(command: _F, *, writes: bool = True, strict: bool = True) -> _F:
    """--class, --read and --mask as one argument `reading`; with --write-adapter where the command `writes` one.

    With --strict, except where a command reads code by other names only if it is told how.
    """

    @functools.wraps(command)
    def called(
        *args: Any,
        class_name: str | None,
        read: tuple[str, ...],
        mask: str | None,
        strict: bool = False,
        write_adapter: Path | None = None,
        **named: Any,
    ) -> Any:
        class_name = None if class_name is None else class_name.removesuffix(".forward")  # which is the class
        flags = (*read, *([f"entry={class_name}"] if class_name else []), *([f"mask={mask}"] if mask else []))
        if strict and (flags or write_adapter):
            raise UsageError(
                "--strict asks for the contract's names, so nothing is read.", next_step="Leave one of the two out"
            )
        parse(flags)
        return command(*args, reading=ReadingOptions(flags=flags, strict=strict, adapter=write_adapter), **named)

    options = [
        click.option("--class", "class_name", metavar="NAME", help="The class or function to grade."),
        click.option(
            "--read",
            multiple=True,
            metavar="KEY=VALUE",
            is_eager=True,
            callback=_or_help,
            help="How to read code by other names. Repeatable. --read help lists the keys.",
        ),
        click.option("--mask", type=click.Choice(MASKS), help="What True in its mask means; the same as --read mask=…"),
    ]
    if strict:
        options.append(click.option("--strict", is_flag=True, help="Ask for the names of the kata's contract."))
    if writes:
        of_adapter = click.option(
            "--write-adapter",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write the code with an adapter that makes it an attempt.",
        )
        options.append(of_adapter)
    for option in reversed(options):
        called = option(called)
    return cast("_F", called)
