"""The search for the reading of an attention: which of the definitions that look like one, and how it is read."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.properties.failures import AttemptDied
from attn_kata.readings.candidates import builders, calls, positions
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching import certain, doubts, mask_notes, one_head, own_context, own_weights, turning
from attn_kata.readings.searching.behaviour import Ranked
from attn_kata.readings.searching.definition_search import DefinitionSearch
from attn_kata.readings.searching.search import MOST_DEFINITIONS, MOST_MISTAKES, Search
from attn_kata.readings.source.structure import Definition, is_model, stands_alone

_NAMED_SO = re.compile(r"att|head|mha|score|bahdanau|luong", re.IGNORECASE)


def run(
    search: Search, fitting: list[Definition], mask_of: Ranked | None, *, candidates: tuple[str, ...]
) -> Chosen | NotRead:
    """The reading of one of these definitions, the likeliest first. Raises AttemptDied.

    `mask_of`: how the source's function for a mask is read.

    `candidates` are the names of all definitions that may be meant, also where the user has named one.
    """
    best: tuple[Ranked, DefinitionSearch] | None = None
    likeliest: tuple[Ranked, DefinitionSearch] | None = None  # of those that answer, or raise by their own mistake
    death: AttemptDied | None = None
    unread: list[Definition] = []
    silent: dict[str, str] = {}  # those that gave no answer, and why
    for place, definition in enumerate(fitting[:MOST_DEFINITIONS]):
        around = [whole for whole in fitting[:place] if whole.uses(definition) and not is_model(whole)]
        if any(whole not in unread or not stands_alone(definition, whole) for whole in around):
            continue  # a part that is right would hide the mistakes of the whole, which could not be read
        if any(definition.uses(part) for part in fitting[:place]) and not is_model(definition):
            continue  # a block around it is no attention
        one = DefinitionSearch(search=search, definition=definition, mask_of=mask_of, several=len(fitting) > 1)
        # One death may be the fault of one reading. But no definition may use up all that the process may die.
        search.may_die = 1 if best is None and death is None else 0
        try:
            found = one.run()
            fails_by_itself = (
                found is not None
                and not found.answers
                and (
                    certain.raises(found.reading, search, definition)
                    or one_head.raised_by_several(search, found.reading) is not None
                )
            )
        except AttemptDied as died:
            death = died
            search.tried.append(f"{definition.name}: {died.reason}")
            continue
        if (found is None or not found.answers) and _NAMED_SO.search(definition.name):
            silent[definition.name] = _why_not_read(search, definition, found)
        if found is None:
            unread.append(definition)
        elif around and found.answers:
            one.said += (f"{around[0].name}, which uses it, could not be read: only {definition.name} is graded",)
        if found is not None and (found.answers or fails_by_itself) and likeliest is None:
            likeliest = found, one
        if found is not None and (best is None or found.mistakes < best[0].mistakes):
            best = found, one
        if best is not None and best[0].mistakes <= MOST_MISTAKES:
            break  # the likeliest definition that can be explained
    if likeliest is not None and best is not likeliest and not doubts.of_failure(likeliest[1], likeliest[0]):
        best = likeliest  # another definition that is right would hide its mistakes, however many they are
    if best is not None and search.tried and not best[0].answers and is_model(best[1].definition):
        best = None  # what is said of the attention in it is of more use
    if best is None and death is not None:
        raise death
    if best is None:
        nothing = not fitting and "entry" not in search.given
        if nothing:
            search.tried.append("nothing in the file looks like an attention that this kata could grade")
        return NotRead(tried=tuple(search.tried), candidates=candidates, nothing=nothing)
    ranked, of_definition = best
    is_right = ranked.answers and not ranked.mistakes  # what is wrong fails by its mistake
    if is_right and (not_fitting := own_weights.misfit(search, ranked.reading)):
        search.tried.append(f"{ranked.reading.entry}: {not_fitting}")
        return NotRead(tried=tuple(search.tried), candidates=candidates, nothing=False)
    turns = turning.seen(search, ranked.reading, of_definition.definition) if ranked.answers else turning.Seen()
    if ranked.answers:
        used = [one.name for one in search.structure.definitions if one.uses(of_definition.definition)]
        of_definition.said += tuple(why for name, why in silent.items() if name not in used)
    return search.chosen(
        ranked,
        settled=not ranked.answers or _is_settled(search, ranked.reading, of_definition),
        hint=of_definition.forms.documented,
        candidates=tuple(name for name in candidates if name != of_definition.definition.name),
        ties=_others(ranked),
        # Code of another kind may be right for the few and short inputs of a search.
        doubt=doubts.of_failure(of_definition, ranked)
        if ranked.mistakes > MOST_MISTAKES
        else doubts.of_kind(of_definition) or doubts.of_norms(ranked.reading),
        layout_open=search.contract.has_score and not ranked.answers,
        switch_untried=of_definition.switch_untried,
        untried=calls.untried(of_definition.definition, ranked.reading),
        without_mask=mask_notes.without_mask(of_definition, ranked.reading, answers=ranked.answers),
        mask_untried=mask_notes.mask_untried(of_definition, ranked.reading),
        masks_untried=(
            *mask_notes.masks_untried(of_definition, ranked.reading),
            *calls.others_untried(of_definition.definition, ranked.reading),
        ),
        dropout_untried=calls.untried_dropout(of_definition.definition, ranked.reading),
        raised_by_heads=None if ranked.answers else one_head.raised_by_several(search, ranked.reading),
        notes=(
            *mask_notes.notes(of_definition, ranked.reading, answers=ranked.answers),
            *doubts.of_far_tokens(of_definition, ranked.reading),
            *doubts.of_other_path(of_definition, ranked.reading),
            *(own_weights.of_other_sizes(search, ranked.reading, of_definition.definition) if is_right else []),
            *[positions.BIAS_NOT_GRADED] * bool(positions.bias_tables(ranked.reading.unturned)),
            *turns.notes,
        ),
        beside=(
            *turns.beside,
            *mask_notes.beside(of_definition, ranked.reading, answers=ranked.answers),
            *(own_context.beside(search, ranked.reading, of_definition.definition) if is_right else ()),
            *(own_context.of_another_length(search, ranked.reading, of_definition.definition) if is_right else ()),
        ),
        further=bool(of_definition.further) and ranked.answers and ranked.mistakes > MOST_MISTAKES,
    )


def _why_not_read(search: Search, definition: Definition, found: Ranked | None) -> str:
    """What is said of a definition that looked likelier than the one that is graded, and gave no answer."""
    tried = next((text for text in reversed(search.tried) if text.startswith(definition.name)), definition.name)
    why = tried.removeprefix(definition.name) if found is None else f": every call raises{search.why([found.reading])}"
    return f"{definition.name} was tried first, and could not be read{why[:200]}"


def _is_settled(search: Search, reading: Reading, of_definition: DefinitionSearch) -> bool:
    """Whether words, names or the user say what True in the mask means, and it is read so."""
    said = of_definition.forms.documented
    if reading.mask not in ("keep", "hide") or "mask" in search.given or (said and said.meaning == reading.mask):
        return True
    builder = search.structure.find(reading.builder) if reading.builder else None
    return builder is not None and builders.documented(builder) is not None


def _others(ranked: Ranked) -> tuple[Reading, ...]:
    """The ties that mean something else than the reading that was taken, and than one another."""
    by_meaning = {_means(one): one for one in reversed(ranked.ties)}
    by_meaning.pop(_means(ranked.reading), None)
    return tuple(one for one in ranked.ties if one in by_meaning.values())


def _means(reading: Reading) -> Reading:
    """What a person would want to choose; not the type or the number of dimensions of an argument."""
    return replace(reading, dims=0, mask_type="bool", shape="any", call=(), returns="", query="")
