"""`attn-kata explain`: what a mistake or a property is, why it matters, how to see it, and public examples."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache

import click
from click.shell_completion import CompletionItem

from attn_kata import catalog, specimens
from attn_kata.cli.arguments import json_option
from attn_kata.cli.output import emit, paragraph, warn, width
from attn_kata.diagnosis import catalogue, examples
from attn_kata.diagnosis.catalogue import Entry
from attn_kata.diagnosis.examples import Example
from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.resources import katas_folder
from attn_kata.specimens import Specimen

_SEE_ALL = "List all mistakes: attn-kata explain"


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """A property of one kata, from the decorator of its hidden test."""

    kata: str
    name: str
    claim: str
    tier: str
    look_at: str | None
    needs: tuple[str, ...]


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in known() if name.startswith(incomplete)]


def known() -> list[str]:
    """Every mistake and every property, by name."""
    return [*catalogue.load(), *_properties()]


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
    if not plain or any(entry.family == plain for entry in entries.values()):
        chosen = [entry for entry in entries.values() if plain in ("", entry.family)]
        return _list_json(chosen) if as_json else _list_text(chosen)
    if plain in _properties():
        claims = _properties()[plain]
        return _property_json(claims) if as_json else _property_text(claims, kata)
    raise _unknown(name, plain, entries)


def _unknown(name: str, plain: str, entries: dict[str, Entry]) -> UsageError:
    if plain in catalog.slugs():
        return UsageError(f"'{name}' is a kata.", next_step=f"Start it: attn-kata start {plain}")
    ids = list(entries)
    short = [id for id in ids if id.partition(".")[2].lower() == plain]
    within = [id for id in ids if plain in re.split(r"[._]", id.lower())]  # sqrt: scale.no_sqrt
    told = [id for id, entry in entries.items() if plain in re.findall(r"\w+", f"{entry.title} {entry.plain}".lower())]
    likely = short or within or told
    if likely:
        meant = " or ".join(f"'{id}'" for id in likely[:3])
        return UsageError(f"There is no mistake '{name}'. Did you mean {meant}?", next_step=_SEE_ALL)

    import difflib  # only here: a correct name does not need it

    near = difflib.get_close_matches(plain, [*ids, *_properties()], n=1, cutoff=0.5)
    said = f" Did you mean '{near[0]}'?" if near else ""
    return UsageError(f"There is no mistake and no property '{name}'.{said}", next_step=_SEE_ALL)


# ------------------------------------------------------------------------------------------------------- reading


@lru_cache(maxsize=1)
def _properties() -> dict[str, list[_Claim]]:
    """Every property by name, in every kata that has it. The hidden tests are read, not imported: they need torch."""
    found: dict[str, list[_Claim]] = {}
    for slug in catalog.slugs():
        file = katas_folder() / slug / f"test_{slug}.py"
        if not file.is_file():
            continue
        body = ast.parse(file.read_bytes()).body
        constants = _constants(body)
        for node in body:
            claim = _claim(slug, node, constants) if isinstance(node, ast.FunctionDef) else None
            if claim is not None:
                found.setdefault(claim.name, []).append(claim)
    return found


def _claim(slug: str, test: ast.FunctionDef, constants: dict[str, ast.expr]) -> _Claim | None:
    """The arguments of `@claims(…)` on a hidden test; None without it."""
    for mark in test.decorator_list:
        if not (
            isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "claims" and mark.args
        ):
            continue
        said = {one.arg: _literal(one.value) for one in mark.keywords if one.arg}
        needs = said.get("needs") or ()
        return _Claim(
            kata=slug,
            name=test.name.removeprefix("test_"),
            claim=_text(mark.args[0], constants),
            tier=str(said.get("tier") or "core"),
            look_at=str(said["look_at"]) if said.get("look_at") else None,
            needs=(needs,) if isinstance(needs, str) else tuple(str(one) for one in needs if one),  # type: ignore[attr-defined]
        )
    return None


def _constants(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What a file assigns to names, also to several at once."""
    found: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]  # type: ignore[attr-defined]
            found.update((name.id, made) for name, made in pairs if isinstance(name, ast.Name))
    return found


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """A string, or an f-string of the file's constants, as the numbers of a training."""
    if not isinstance(node, ast.JoinedStr):
        return str(_literal(node) or "")
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            spec = _text(part.format_spec, constants) if part.format_spec is not None else ""
            parts.append(format(_literal(_constant(part.value, constants)), spec))
        else:
            parts.append(str(_literal(part)))
    return "".join(parts)


def _constant(node: ast.expr, constants: dict[str, ast.expr]) -> ast.expr:
    """What a name stands for; for `LEARNING.B`, the argument `B` of the call that made LEARNING."""
    if isinstance(node, ast.Name):
        return constants.get(node.id, node)
    if isinstance(node, ast.Attribute):
        made = _constant(node.value, constants)
        if isinstance(made, ast.Call):
            return next((one.value for one in made.keywords if one.arg == node.attr), node)
    return node


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _example(entry: Entry, kata: str | None = None) -> tuple[Example, Specimen] | None:
    """An attempt that makes this mistake and nothing else, of `kata` if it has one; None where no kata has one."""
    for own in specimens.read(katas_folder() / kata) if kata else ():
        if own.mistakes == {entry.id} and own.edits and examples.wrong_lines(own):
            return Example(kata=str(kata), name=own.name, breaks=tuple(sorted(own.breaks))), own
    example = examples.load().get(entry.id)
    return None if example is None else (example, example.specimen())


def _breaking(claims: list[_Claim], kata: str | None = None) -> list[str]:
    """The ids of the mistakes that are known to break a property, or to break it in `kata`, in the catalogue's order."""
    if kata is not None:
        rows = specimens.read(katas_folder() / kata)
        alone = {id for row in rows if len(row.mistakes) == 1 and claims[0].name in row.breaks for id in row.mistakes}
        return [id for id in catalogue.load() if id in alone]
    known = examples.load()
    return [id for id in catalogue.load() if id in known and claims[0].name in known[id].breaks]


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
    found = _example(entry, kata)
    if found is not None:
        example, specimen = found
        code = [_code(line) for line in examples.wrong_lines(specimen).splitlines()]
        sections.append(_section("How it looks", _item(f"in {example.kata}"), *code))
        sections.append(_section("Properties that it breaks", *(_item(name) for name in example.breaks)))
    if entry.seen:
        places = [f"{_item(sighting.what)}\n    {sighting.url}" for sighting in entry.seen]
        sections.append(_section("Where it was seen", *places))
    return "\n\n".join(sections)


def _property_text(every: list[_Claim], kata: str | None) -> str:
    claims = [claim for claim in every if claim.kata == kata] or every
    only = kata if len(claims) < len(every) else None
    sections = [f"{claims[0].name}: a property" + (f" of {only}" if only else "")]
    by_claim: dict[str, list[_Claim]] = {}
    for claim in claims:
        by_claim.setdefault(claim.claim, []).append(claim)
    said = []
    for words, members in by_claim.items():
        katas = ", ".join(f"{member.kata} ({member.tier})" for member in members)
        said += [paragraph(words, "  "), _item(f"in {katas}", "    ")]
    sections.append(_section("What it claims", *said))
    if any(claim.tier == "core" for claim in claims):
        sections.append(
            paragraph(
                "core: an attempt passes when all core properties hold. edge: beyond the bar (reported, never decides)."
            )
        )
    else:
        sections.append(paragraph("edge: beyond the bar (reported, never decides); an attempt passes without it."))
    places = dict.fromkeys(claim.look_at for claim in claims if claim.look_at)
    if places:
        sections.append(_section("Where to look", *(_item(place) for place in places)))
    needs = dict.fromkeys(need for claim in claims for need in claim.needs)
    if needs:
        sections.append(_section("Tested only when these hold", _item(", ".join(needs))))
    mistakes = _breaking(claims, kata if claims[0].kata == kata else None)
    if mistakes:
        entries = catalogue.load()
        sections.append(_section("Known mistakes that break it", _table([entries[id] for id in mistakes])))
    if only:
        others = len(every) - len(claims)
        katas = "1 other kata" if others == 1 else f"{others} other katas"
        sections.append(paragraph(f"In {katas} too: attn-kata explain {claims[0].name} --all"))
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
    found = _example(entry)
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
            "breaks": {name: [found[0].kata] for name in sorted(found[1].breaks)} if found else {},
            "example": {"kata": found[0].kata, "specimen": found[0].name, "code": examples.wrong_lines(found[1])}
            if found
            else None,
        }
    )


def _property_json(claims: list[_Claim]) -> str:
    return _dump(
        {
            "property": claims[0].name,
            "katas": [
                {
                    "kata": claim.kata,
                    "claim": claim.claim,
                    "tier": claim.tier,
                    "look_at": claim.look_at,
                    "needs": list(claim.needs),
                }
                for claim in claims
            ],
            "mistakes": _breaking(claims),
        }
    )
