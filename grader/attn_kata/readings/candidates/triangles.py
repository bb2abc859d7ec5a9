"""Whether code hides later keys by itself, as its source says: a triangle that it makes, and the flags that switch it on."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings.candidates import roles
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source.structure import Definition, Parameter, Structure, code_of


def always_causal(definition: Definition, structure: Structure) -> bool:
    """Whether the source says that later keys are hidden, or compares positions with each other."""
    text = structure.reached(definition)
    said = re.search(r"\btri[lu]_?\b|causal|因果|subsequent|look_?ahead|autoregress", text, re.IGNORECASE)
    in_a_loop = r"\b\w+\s*\+\s*1\s*:\s*\]"  # scores[..., i, i + 1 :] = -inf
    code = code_of(text)
    return said is not None or re.search(in_a_loop, code) is not None or _compares_positions(code)


def _ranges(code: str) -> set[str]:
    """The names that stand for a range of positions, and `arange` itself."""
    pairs = re.findall(r"^\s*(\w+)\s*,\s*(\w+)\s*=[^\n=]*\barange\([^\n=]*,[^\n=]*\barange\(", code, re.MULTILINE)
    alone = re.findall(r"\b(\w+)\s*=\s*[^\n=]*\barange\(", code)
    return {"arange", *alone, *(name for pair in pairs for name in pair)}


_LAID = r"\[[^\]]*None[^\]]*\]|\.(?:unsqueeze|view|reshape)\([^)]*\)"


def _compares(line: str, ranges: set[str]) -> bool:
    """Whether a line compares two ranges of positions: also one laid as a row with itself as a column.

    One name on both sides is none: `where(d < 8, d, 8)`.
    """
    sides = re.split(r"(?<!-)[<>]=?", line, maxsplit=1)
    if len(sides) < 2:
        return False
    left, right = (set(re.findall(r"\w+", side)) & ranges for side in sides)
    if len(left) == 1 and left == right:
        row, column = (re.findall(rf"\b{next(iter(left))}({_LAID})?", side) for side in sides)
        if row[:1] != column[:1]:
            return True
    return bool(left and right) and (len(left | right) > 1 or "arange" in left)


def _compares_positions(code: str) -> bool:
    """Whether a line of the code compares two ranges of positions."""
    ranges = _ranges(code)
    apart = [
        name
        for name, left, right in re.findall(
            r"\b(\w+)\s*=\s*(\w+)(?:\[[^\]\n]*\])?\s*-\s*(\w+)(?:\[[^\]\n]*\])?\s*$", code, re.MULTILINE
        )
        if {left, right} <= ranges
    ]  # distance = rows - columns
    signs = any(re.search(rf"\b{name}\s*[<>]=?\s*0\b|\b0\s*[<>]=?\s*{name}\b", code) for name in apart)
    return signs or any(_compares(line, ranges) for line in code.split("\n"))


def is_switched_off(reading: Reading, definition: Definition) -> bool:
    """Whether an argument that the code is built or called with, False or None, says that nothing is masked."""
    given = {**dict(reading.build), **dict(reading.call)}
    flags = (*definition.build, *(one for one in definition.call if one.default == "False"))
    off = {one.name for one in flags if given.get(one.name, one.default) in ("False", "None")}
    off |= _set_to_false(definition)
    if _parts_that_are_off(given, definition.reached):
        return True
    words = _words(definition.reached)
    if any(given.get(one.name) == "None" and one.name in words for one in definition.call):
        return True
    return any(_SWITCH.search(name) or "mask" in name.lower() or name in _guards(definition.reached) for name in off)


def _parts_that_are_off(given: dict[str, str], text: str) -> set[str]:
    """The parts of a config, False or None, that must be true for the triangle: `if config["max_len"] and config["mask"]:`."""
    asked = [line for line in _around_triangles(text) if re.match(r"\s*(?:el)?if\b", line)]
    asked = [line for line in asked if re.search(r"\bnot\b|\bor\b|[=!<>]=?", line) is None]
    return {
        name
        for name, value in given.items()
        if "." in name and value in ("False", "None")
        if any(re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", line) for line in asked)
    }


def _set_to_false(definition: Definition) -> set[str]:
    """The attributes that a class sets to False, whatever its base is given."""
    return set(re.findall(r"self\.(\w+)\s*=\s*False\b", code_of(definition.reached)))


def switched_on(reading: Reading, definition: Definition, structure: Structure) -> Reading | None:
    """The reading with the triangle that the code makes under a flag which the reading leaves off; None without one."""
    code = code_of(structure.reached(definition))
    if re.search(r"\btri[lu]_?\(", code) is None and not _compares_positions(code):
        return None
    guards, words = _guards(code), _words(code)

    def on(pairs: Pairs, flags: tuple[Parameter, ...]) -> Pairs:
        given = dict(pairs) | {
            one.name: "False" for one in flags if one.default == "False" and one.name not in dict(pairs)
        }
        last = {name: name.rpartition(".")[2] for name in given}
        switched = {name for name in given if _SWITCH.search(last[name]) or last[name] in guards}
        changed = {name for name in switched if given[name] == "False" and not re.search("cross", name, re.IGNORECASE)}
        changed -= {name for name in changed if last[name] in _set_to_false(definition)}
        changed |= _parts_that_are_off(given, code)
        given |= {name: words[name] for name, value in given.items() if value == "None" and name in words}
        return tuple(
            (name, "True" if name in changed else given[name])
            for name in given
            if name in dict(pairs) or name in changed
        )

    build, call = on(reading.build, definition.build), on(reading.call, definition.call)
    same = (build, call) == (reading.build, reading.call)
    return None if same else replace(reading, build=build, call=call, causal=True)


def makes_triangle(definition: Definition, structure: Structure) -> bool:
    """Whether the code makes a triangle for itself, and no argument switches it off."""
    text = structure.reached(definition)
    flags = {parameter.name for parameter in (*definition.build, *definition.call)} | set(definition.config_names)
    if any(_SWITCH.search(name) for name in flags) or flags & {*_guards(text), *_words(text)}:
        return False
    if _is_left_off(definition, structure, text):
        return False
    code = code_of(text)
    made = re.search(r"\btri[lu]_?\b", code) is not None or _compares_positions(code)
    parameter = roles.mask_parameter(definition)
    return made and (parameter is None or "register_buffer" in code or _is_unconditional(code, parameter.name))


def _is_left_off(definition: Definition, structure: Structure, text: str) -> bool:
    """Whether a class or function inside makes the triangle only by a flag, or a word, that is not its default.

    And nobody gives it.
    """
    guards, words, code = _guards(text), _words(text), code_of(text)
    for one in structure.reach(definition):
        calls = re.findall(rf"(?<!class )(?<!def )\b{re.escape(one.name)}\(((?:[^()]|\([^()]*\))*)\)", code)
        for place, parameter in enumerate(one.build if one.is_class else one.call):
            is_word = parameter.name in words and (parameter.default or "").startswith(("'", '"'))
            is_off = parameter.default != words[parameter.name] if is_word else parameter.default == "False"
            if one is definition or not is_off or parameter.name not in {*guards, *words} or not calls:
                continue
            by_name = re.compile(
                rf"\b{re.escape(parameter.name)}\s*=(?!\s*(?:{re.escape(parameter.default or '')})(?!\w))"
            )
            plain = [re.sub(r"\([^()]*\)", "", each) for each in calls]
            by_place = [len([part for part in each.split(",") if part.strip() and "=" not in part]) for each in plain]
            given = [
                by_name.search(each) or "*" in each or count > place
                for each, count in zip(plain, by_place, strict=True)
            ]
            if not any(given):
                return True
    return False


def _is_unconditional(code: str, mask: str) -> bool:
    """Whether a triangle is made in every call: in no branch, and not where a mask is only looked at."""
    lines, ranges = [line for line in code.split("\n") if line.strip()], _ranges(code)
    for place, line in enumerate(lines):
        made = re.search(r"\btri[lu]_?\(", line) is not None and re.search(rf"\btri[lu]\(\s*{mask}\b", line) is None
        if not made and not _compares(line, ranges):
            continue
        function = _function_around(place, lines)
        if not re.search(r"\bif\b", line) and function and _is_always_called(function, lines):
            return True
    return False


def _function_around(place: int, lines: list[str]) -> str:
    """The function whose body a line is in, and no branch or loop of it; "" where it is in one."""
    depth = len(lines[place]) - len(lines[place].lstrip())
    outer = [
        before
        for before in lines[:place]
        if len(before) - len(before.lstrip()) < depth
        and not before.lstrip().startswith(")")  # the end of a long header
    ]
    found = re.match(r"\s*def (\w+)", outer[-1]) if outer else None
    return found[1] if found else ""


def _is_always_called(function: str, lines: list[str], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a function is called in no branch of those that call it; one that nothing calls is the call itself."""
    places = [place for place, line in enumerate(lines) if re.search(rf"(?<!def )\b{function}\(", line)]
    around = [_function_around(place, lines) for place in places if not re.search(r"\bif\b", lines[place])]
    return not places or any(
        one and one not in seen and _is_always_called(one, lines, seen | {function}) for one in around
    )


# "casual" is how causal is often misspelt.
_SWITCH = re.compile(r"ca(?:us|su)al|masked|autoreg|decoder|use_?mask|unidirect", re.IGNORECASE)


_ASKED = re.compile(r"\s*(?:el)?if\b[\s(]*(?:self\.)?(\w+)\s*(?:is True|== True)?[\s)]*:")
_COMPARED = re.compile(r"\s*(?:el)?if\b[\s(]*(?:self\.)?(\w+)\s*==\s*[\"']([\w-]+)[\"'][\s)]*:")


def _guards(text: str) -> set[str]:
    """The names that an `if` around a triangle asks: `if look_back: mask = torch.tril(…)`, or around what is made of one."""
    return {asked[1] for line in _around_triangles(text) if (asked := _ASKED.match(line))}


def _words(text: str) -> dict[str, str]:
    """The same for names that are compared with a word, with the first word: `if mode == "causal":`."""
    found = [asked for line in _around_triangles(text) if (asked := _COMPARED.match(line))]
    return {asked[1]: f"'{asked[2]}'" for asked in reversed(found)}


def _around_triangles(text: str) -> list[str]:
    """The lines that a triangle, or what is made of one, stands below."""
    found: list[str] = []
    lines = [line for line in text.split("\n") if line.strip()]
    kept = re.findall(r"(?:register_buffer\(\s*[\"']|self\.)(\w+)(?:[\"'],|\s*=)\s*torch\.tri[lu]\(", text)
    triangle = "|".join((r"\btri[lu]_?\(", *(rf"\bself\.{name}\b" for name in kept)))
    for place, line in enumerate(lines):
        if not re.search(triangle, line):
            continue
        depth = len(line) - len(line.lstrip())
        for before in reversed(lines[:place]):
            indent = len(before) - len(before.lstrip())
            if indent < depth:
                depth = indent
                found.append(before)
    return found
