"""What rotary positions do in the code, which the reading of an attention leaves out: what is wrong there, and what is said."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from attn_kata.diagnosis import probing
from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.diagnosis.pipeline import Probe
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.properties.handle import Handle
from attn_kata.protocol import wire
from attn_kata.readings.adapters import adapter
from attn_kata.readings.asking.limited import Limited
from attn_kata.readings.candidates import caching, positions
from attn_kata.readings.choice import Beside
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source.packages import is_missing
from attn_kata.readings.source.structure import Definition

NO_EFFECT = Beside(
    ids=("rope.positions_ignored", "rope.head_axis"),
    property="values",
    words="with its rotary positions, the last token gets the same result in whichever order the others come",
)
KEYS_LOST = Beside(
    ids=("project.query_for_key",),
    property="values",
    words="with its rotary positions, the layer of the keys has no effect: what turns q and k makes both of the queries",
)
STRETCHES = Beside(
    ids=("rope.mixed_conventions", "rope.sign_lost"),
    property="values",
    words="what turns q and k changes the lengths of vectors, so it is no rotation",
)
OTHERWISE_CACHED = (
    "Its rotary positions are left out. With them, its cache gives other numbers, one token after the other, than the whole "
    "sequence. If its caller does not say where new tokens stand, then keys from the cache are turned again, or new tokens are "
    "turned as if they were the first ones (rope.positions_ignored)"
)
OF_AN_IMPORT = (
    "Its rotary positions are left out. {name} comes from '{package}', which is not here: which axis of q and k it takes for "
    "the tokens, and what it does with them, is not graded"
)
RAISES = (
    "Its rotary positions are left out. With them, the code raises: {raised}. If it does so in use, the heads may stand where "
    "the rotation wants the tokens (rope.head_axis)"
)
# What stands for positions, or for a rotation, that others make.
_OF_OTHERS = ("positions", "places", "like", "base", "no_turn")
_TOKENS = 8  # more than heads: a table that is cut to the number of heads is long enough
_ALIKE = 1e-5
_CALLED = "it turns"
# In the place of what leaves a rotation out: what says that it is called, and the rotation itself.
_SAYS = f'''

def _unturned(turn):
    def says(*given, **named):
        raise RuntimeError("{_CALLED}")

    says.__wrapped__ = turn
    return says


def _unturned_class(made):
    def says(*given, **named):
        raise RuntimeError("{_CALLED}")

    return _left_out(made, says)
'''
_STRETCHED = "it stretches"
# The rotation itself, which says that it changes the lengths of vectors, by other factors for other tokens.
_MEASURES = f'''

def _unturned(turn):
    while getattr(getattr(turn, "__code__", None), "co_name", "") in ("unturned", "says", "measures"):
        turn = turn.__wrapped__

    def measures(*given, **named):
        turned = turn(*given, **named)
        every = [one for one in (*given, *named.values()) if isinstance(one, _torch.Tensor) and one.is_floating_point()]
        for out in turned if isinstance(turned, tuple) else (turned,):
            alike = [one for one in every if isinstance(out, _torch.Tensor) and one.shape == out.shape and one.dim() > 2]
            if alike and not any(_is_turned(one, out) for one in alike):
                raise RuntimeError("{_STRETCHED}")
        return turned

    measures.__wrapped__ = turn
    return measures


def _is_turned(one, out):
    factors = out.norm(dim=-1) / one.norm(dim=-1)
    if not bool(factors.isfinite().all()):  # it got numbers that it is not meant for
        return True
    return bool(((factors - factors.flatten()[0]).abs() < 1e-3 * factors.abs()).all())
'''
_TURNS = """

def _unturned(turn):
    while getattr(getattr(turn, "__code__", None), "co_name", "") in ("unturned", "says", "measures"):
        turn = turn.__wrapped__
    return turn


def _unturned_class(made):
    return _made(made)
"""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the code's own rotations of q and k do: what is certainly wrong, and sentences about what is not certain."""

    beside: tuple[Beside, ...] = ()
    notes: tuple[str, ...] = ()


def seen(search: Search, reading: Reading, definition: Definition) -> Seen:
    """What the code's own rotations of q and k do wrong; that of another file or package is not seen."""
    imports = search.structure.imports
    unseen = [name for name in reading.unturned if name in imports and search.structure.find(name) is None]
    missing = [name for name in unseen if is_missing(imports[name])]
    if missing:
        return Seen(notes=(OF_AN_IMPORT.format(name=missing[0], package=imports[missing[0]]),))
    others = any(value in _OF_OTHERS for _, value in (*reading.call, *reading.build))
    if not reading.unturned or others or not search.contract.is_self or reading.one_length or reading.by_token:
        return Seen()
    reading = _with_rotations(reading)
    said = _asked(search, reading, _SAYS)
    if said is None or not any(_CALLED in one.text for one in said.raised):
        return Seen()
    given = any(value in ("turns", "cos", "sin", "angles") for _, value in reading.call)
    turned = _asked(search, reading, _TURNS, of_positions=given)
    output = _first(turned)
    raised = [] if turned is None or given else [one for one in turned.raised if one.frames and about_shapes(one.text)]
    if output is None and raised:
        return Seen(notes=(RAISES.format(raised=f"{raised[0].text}{raised[0].where}"),))
    if output is None or len(output) != 2:  # code that has made another number of texts of the two
        return Seen()
    first, second = output[:, -1]
    found = [NO_EFFECT] * _equal(first, second)
    measured = _asked(search, reading, _MEASURES, of_positions=given)
    found += [STRETCHES] * (measured is not None and any(_STRETCHED in one.text for one in measured.raised))
    layer = search.contract.layers.get("k")
    if layer is not None:
        negated = _first(_asked(search, reading, _TURNS, of_positions=given, negated=f"{layer.name}.weight"))
        found += [KEYS_LOST] * (negated is not None and _equal(output, negated))
    if found:
        names = (definition.layers.get(name, name) for name in reading.unturned)
        turns = next((one for name in names if (one := search.structure.find(name)) is not None), None)
        return Seen(beside=tuple(replace(one, line=turns.lines[0] if turns is not None else 0) for one in found))
    return Seen(notes=(OTHERWISE_CACHED,) * _is_otherwise_cached(search, reading, definition, of_positions=given))


def _with_rotations(reading: Reading) -> Reading:
    """The reading with rotations on, where a flag of the code has switched them off."""
    build = tuple(
        (name, "True" if value == "False" and positions.is_rotation(name) else value) for name, value in reading.build
    )
    return replace(reading, build=build)


def _is_otherwise_cached(search: Search, reading: Reading, definition: Definition, *, of_positions: bool) -> bool:
    """Whether its cache gives other numbers, one token after the other, than whole sequences; and without rotations the same.

    The last token is compared: it may see all tokens, whether the code hides later ones or its caller does.
    """
    cached = caching.through(reading, search.contract, definition, search.structure)
    if cached is None:
        return False
    for returns in dict.fromkeys((cached.returns, "0")):
        by_token = _with_rotations(replace(cached, returns=returns))
        alike = []
        for turn in (positions.UNTURNED, _TURNS):
            last = [_first(_asked(search, one, turn, of_positions=of_positions)) for one in (reading, by_token)]
            if last[0] is None or last[1] is None:
                break
            alike.append(_equal(last[0][:, -1], last[1][:, -1]))
        if len(alike) == 2:
            return alike == [True, False]
    return False


def _first(asked: ProbeResults | None) -> torch.Tensor | None:
    """The first output, if it is a tensor."""
    output = None if asked is None else next((one.output for one in asked.answers), None)
    return output if isinstance(output, torch.Tensor) else None


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=_ALIKE, atol=_ALIKE)


def _asked(
    search: Search, reading: Reading, turn: str, *, of_positions: bool = False, negated: str = ""
) -> ProbeResults | None:
    """What the code answers for tokens in two orders, with `turn` in the place of what leaves its rotations out; or None.

    `negated` names a parameter that is multiplied with -1.
    """
    limits = search.limits(reading).without_mask()
    pipeline = next(limits.pipeline(one) for one in search.pipelines if one.entry == search.contract.entry)
    probe = next((_in_two_orders(one) for one in pipeline.probes() if one.sizes.get("D", 1) % 2 == 0), None)
    if probe is not None and negated:
        probe = replace(probe, stronger={**probe.stronger, negated: -probe.stronger.get(negated, 1.0)})
    text = adapter.source_of(reading, search.contract).replace(positions.UNTURNED, turn)
    if of_positions:
        first = " + place" * reading.by_token
        text = text.replace(positions.ANGLES_OF_0, positions.ANGLES.format(first=first))
    if probe is None or search.attempt.adapt(text).status != wire.OK:
        return None
    attempt = Handle(Limited(search.attempt, limits, attempt=True), search.returns)
    reference = Handle(search.reference, search.returns)
    return probing.ask(replace(pipeline, probes=lambda: [probe]), attempt, reference, if_it_answers=True)


def _in_two_orders(probe: Probe) -> Probe:
    """The probe with two samples of more tokens: the same ones, all but the last in another order."""
    x, *others = probe.args
    tokens = x[0].repeat(-(-_TOKENS // x.shape[-2]), 1)[:_TOKENS] + torch.arange(_TOKENS)[:, None] / _TOKENS  # (T, E)
    both = torch.stack([tokens, torch.cat([tokens[:-1].roll(1, dims=0), tokens[-1:]])])
    sizes = {**probe.sizes, "B": 2, **dict.fromkeys({"T", "Tq", "Tk"} & set(probe.sizes), _TOKENS)}
    return replace(probe, args=(both, *(None for _ in others)), sizes=sizes)
