"""`attn-kata explain`: what a mistake or a property is, why it matters, how to see it, and public examples."""

from __future__ import annotations

import re
import textwrap

import click
from click.shell_completion import CompletionItem

from attn_kata import catalog, claims
from attn_kata.claims import Claim
from attn_kata.cli.arguments import json_option
from attn_kata.cli.output import emit, paragraph, warn, width
from attn_kata.diagnosis import catalogue, examples
from attn_kata.diagnosis.catalogue import Entry
from attn_kata.errors import UsageError
from attn_kata.history import History

_SEE_ALL = "List all mistakes: attn-kata explain"


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in known() if name.startswith(incomplete)]


def known() -> list[str]:
    """Every mistake and every property, by name."""
    return [*catalogue.load(), *claims.load()]


@click.command("explain")
@click.argument("name", metavar="[MISTAKE | PROPERTY]", required=False, shell_complete=_complete)
@click.option("--all", "of_all", is_flag=True, help="Say it for all katas, not only for the current one.")
@json_option()
def command(name: str | None, of_all: bool, as_json: bool) -> None:
    """Explain a mistake or a property, and why it matters.

    A report names properties (values) and mistakes (scale.embed_dim). Without a name, it lists all mistakes. Where a kata is
    current, examples and claims are its own; JSON has those of all katas.
    """
    emit(explained(name or "", as_json=as_json, kata=None if of_all else _current()))


def _current() -> str | None:
    known = History(warn).current()
    return known.kata if known is not None and known.kata in catalog.slugs() else None


def explained(name: str, *, as_json: bool, kata: str | None = None) -> str:
    """The explanation of a mistake, a family of mistakes or a property; without a name, the list. Raises UsageError.

    With `kata`, the text is about this kata wherever it has the mistake or the property.
    """
    entries = catalogue.load()
    plain = catalog.normal(name).removeprefix("test_")
    plain = next((id for id in entries if id.lower() == plain), plain)  # some ids have capitals: layout.T_of_batch
    if plain in entries:
        entry = entries[plain]
        return _mistake_json(entry) if as_json else _mistake_text(entry, kata)
    if plain.endswith("."):  # a family that has a property's name
        plain = plain.removesuffix(".")
    elif plain in claims.load():  # before a family: what breaks the property `device` is the family `device`
        known = claims.load()[plain]
        return _property_json(known) if as_json else _property_text(known, kata)
    if not plain or any(entry.family == plain for entry in entries.values()):
        chosen = [entry for entry in entries.values() if plain in ("", entry.family)]
        return _list_json(chosen) if as_json else _list_text(chosen)
    raise _unknown(name, plain, entries)


def _unknown(name: str, plain: str, entries: dict[str, Entry]) -> UsageError:
    if plain in catalog.slugs():
        return UsageError(f"'{name}' is a kata.", next_step=f"Start it: attn-kata start {plain}")

    import difflib  # only here: a correct name does not need it

    ids = list(entries)
    named = difflib.get_close_matches(plain, claims.load(), n=1, cutoff=0.85)
    short = [id for id in ids if id.partition(".")[2].lower() == plain]
    within = [id for id in ids if plain in re.split(r"[._]", id.lower())]  # sqrt: scale.no_sqrt
    told = [id for id, entry in entries.items() if plain in re.findall(r"\w+", f"{entry.title} {entry.plain}".lower())]
    likely = [*named, *(short or within or told)]
    if likely:
        meant = " or ".join(f"'{id}'" for id in likely[:3])
        return UsageError(f"There is no mistake and no property '{name}'. Did you mean {meant}?", next_step=_SEE_ALL)

    near = difflib.get_close_matches(plain, [*ids, *claims.load()], n=1, cutoff=0.5)
    said = f" Did you mean '{near[0]}'?" if near else ""
    return UsageError(f"There is no mistake and no property '{name}'.{said}", next_step=_SEE_ALL)


# ------------------------------------------------------------------------------------------------------- showing


def _section(heading: str, *parts: str) -> str:
    return "\n".join([heading, *parts])


def _mistake_text(entry: Entry, kata: str | None) -> str:
    sections = [
        paragraph(f"{entry.id}: {entry.title}"),
        _section("What it is", paragraph(entry.plain, "  ")),
        _section("Why it matters", paragraph(entry.why, "  ")),
        _section("How to see it", paragraph(entry.see, "  ")),
        _section("What to ask yourself", paragraph(entry.question, "  ")),
    ]
    example = examples.shown(entry.id, kata)
    if example is not None and example.code is not None:
        code = [_code(line) for line in example.code.splitlines()]
        sections.append(_section("How it looks", _item(f"in {example.kata}"), *code))
    broken = examples.breaks(entry.id)
    here = [name for name, katas in broken.items() if kata in katas] or list(broken)
    if here:
        sections.append(_section("Properties that it breaks", *(_item(name) for name in here)))
    if entry.seen:
        places = [f"{_item(sighting.what)}\n    {sighting.url}" for sighting in entry.seen]
        sections.append(_section("Where it was seen", *places))
    return "\n\n".join(sections)


def _property_text(every: list[Claim], kata: str | None) -> str:
    chosen = [claim for claim in every if claim.kata == kata] or every
    only = kata if len(chosen) < len(every) else None
    sections = [f"{chosen[0].name}: a property" + (f" of {only}" if only else "")]
    by_claim: dict[str, list[Claim]] = {}
    for claim in chosen:
        by_claim.setdefault(claim.claim, []).append(claim)
    said = []
    for words, members in by_claim.items():
        katas = ", ".join(f"{member.kata} ({member.tier})" for member in members)
        said += [paragraph(words, "  "), _item(f"in {katas}", "    ")]
    sections.append(_section("What it claims", *said))
    if any(claim.tier == "core" for claim in chosen):
        sections.append(
            paragraph(
                "core: an attempt passes when all core properties hold. edge: beyond the bar (reported, never decides)."
            )
        )
    else:
        sections.append(paragraph("edge: beyond the bar (reported, never decides); an attempt passes without it."))
    places = dict.fromkeys(claim.look_at for claim in chosen if claim.look_at)
    if places:
        sections.append(_section("Where to look", *(_item(place) for place in places)))
    needs = dict.fromkeys(need for claim in chosen for need in claim.needs)
    if needs:
        sections.append(_section("Tested only when these hold", _item(", ".join(needs))))
    mistakes = examples.breaking(chosen[0].name, kata if chosen[0].kata == kata else None)
    if mistakes:
        entries = catalogue.load()
        sections.append(_section("Known mistakes that break it", _table([entries[id] for id in mistakes])))
    if only:
        others = len(every) - len(chosen)
        katas = "1 other kata" if others == 1 else f"{others} other katas"
        sections.append(paragraph(f"In {katas} too: attn-kata explain {chosen[0].name} --all"))
    if any(entry.family == chosen[0].name for entry in catalogue.load().values()):
        family = f"{chosen[0].name}."
        sections.append(paragraph(f"All mistakes whose names begin with {family}: attn-kata explain {family}"))
    return "\n\n".join(sections)


def _list_text(entries: list[Entry]) -> str:
    families: dict[str, list[Entry]] = {}
    for entry in entries:
        families.setdefault(entry.family, []).append(entry)
    longest = max(len(entry.id) for entry in entries)
    blocks = [_section(family, _table(members, longest)) for family, members in families.items()]
    example = entries[0].id
    blocks.append(f"More about one: attn-kata explain {example}\nA property works too: attn-kata explain values")
    return "\n\n".join(blocks)


def _table(entries: list[Entry], longest: int = 0) -> str:
    longest = longest or max(len(entry.id) for entry in entries)
    rows = []
    for entry in entries:
        first = f"  {entry.id:<{longest}}  "
        rows += textwrap.wrap(entry.title, width(), initial_indent=first, subsequent_indent=" " * len(first))
    return "\n".join(rows)


def _item(text: str, indent: str = "  ") -> str:
    return textwrap.fill(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _code(line: str) -> str:
    """A line of code, its indentation kept; what is too wide goes on below, further in."""
    indent = "    " + line[: len(line) - len(line.lstrip())]
    return _item(line.strip(), indent)


# ---------------------------------------------------------------------------------------------------------- JSON


def _dump(value: object) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)


def _list_json(entries: list[Entry]) -> str:
    return _dump([{"mistake": entry.id, "family": entry.family, "title": entry.title} for entry in entries])


def _mistake_json(entry: Entry) -> str:
    example = examples.shown(entry.id)
    return _dump(
        {
            "mistake": entry.id,
            "family": entry.family,
            "title": entry.title,
            "explanation": entry.plain,
            "question": entry.question,
            "why": entry.why,
            "see": entry.see,
            "seen": [{"url": sighting.url, "what": sighting.what} for sighting in entry.seen],
            "breaks": examples.breaks(entry.id),
            "example": {"kata": example.kata, "specimen": example.row, "code": example.code} if example else None,
        }
    )


def _property_json(known: list[Claim]) -> str:
    return _dump(
        {
            "property": known[0].name,
            "katas": [
                {
                    "kata": claim.kata,
                    "claim": claim.claim,
                    "tier": claim.tier,
                    "look_at": claim.look_at,
                    "needs": list(claim.needs),
                }
                for claim in known
            ],
            "mistakes": examples.breaking(known[0].name),
        }
    )
