"""A kata's computation as named stages in order, and mistakes as replacements of stages.

    PIPELINES = [
        Pipeline(
            entry="scaled_dot_product_attention",
            begin=lambda q, k, v: State(q=q, k=k, v=v),
            stages={"score": s.score, "scale": s.scale_by_head_dim, "softmax": s.softmax_over_keys, "mix": s.mix},
            variants=(*variants("scale.missing", {"scale": s.nothing}), ...),
            probes=lambda: [Probe(args=(q, k, v), sizes={"B": 2, "H": 3, ...}), ...],
        )
    ]

`attn_kata.diagnosis.stages` is the library of stages; `catalogue.toml` has the words for each id.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torch import Tensor

from attn_kata.properties.handle import random_weights

Output = Tensor | tuple[Tensor, ...]  # what is compared: one tensor, or those of a result in parts
State = SimpleNamespace  # passed through the stages; a stage sets attributes to new tensors and never modifies one
Stage = Callable[[State], None]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to make a mistake: `stages` maps the names of stages to what replaces them. Several variants may share an id.

    `id` is an id in `catalogue.toml`. With `shows_in_values` False the probes cannot see the mistake (dropout, in eval()): it
    is a mutant that the hidden tests must fail, and a symptom names it.
    """

    id: str
    stages: Mapping[str, Stage]
    shows_in_values: bool = True


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One call that compares an attempt with the pipeline: float64, all sizes different unless it needs equal ones.

    `args` are the arguments of the call, and `build` those that the module is built with. `sizes` names the sizes, for the
    numbers in an explanation. A module's weights are random; those in `stronger`, by name, are multiplied, so that a mistake
    that changes little is far from every other result.
    """

    args: tuple[Any, ...]
    sizes: dict[str, int]
    build: tuple[Any, ...] = ()
    stronger: Mapping[str, float] = field(default_factory=dict)

    def weights(self, parameters: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """New random weights for parameters of these shapes."""
        return {name: self.stronger.get(name, 1.0) * weight for name, weight in random_weights(parameters).items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline:
    """One entry point of a kata. `stages` without a mistake compute the same as the reference.

    `begin` makes the first state. For a function, it gets the call's arguments; for a module, the parameters (by name),
    the constructor's arguments, and the call's arguments. `state.training` is set afterwards.
    `stages` run in order and put the result into `state.out`: a tensor, or the tuple of its parts. A stage may set
    `state.empty` (bool, broadcastable to the result) for queries without any key: there the result depends on the fill, and is
    not compared.
    Where the state has q, k, v, scores, weights and out, and stages are called scale, mix and merge, the report can say how far
    an attempt is right that no known mistake explains.
    `probes` makes new probes, the cheapest first.
    `beside` is for mistakes that show in values only together with another mistake: by id, the stages that they replace.
    A renormalisation after dropout changes nothing in eval, unless the softmax is wrong too. They are tried where a symptom, or
    the numbers of another function of the kata, have told them.
    `ask` is for probes that take several calls, of a module with a cache, say: `ask(target, *args)` makes them and returns what
    is compared. `target` is the module; for functions it has every function of the kata. `stages` compute one call, and
    `others` has the kata's other functions, without mistakes, by name. `hides` says that a call of such a probe hides keys, by
    `stages.fill`: each right way of masking is then tried.
    `ways` are other right ways to compute, as the stages that they replace. Each gives the same result until a mistake is made
    in another stage: where every key of a query is hidden by mistake, a small epsilon decides between 0 and NaN.
    `activated` says that the contract has an activation: another one, or one elsewhere, is then among `variants`, or unknown.
    """

    entry: str
    begin: Callable[..., State]
    stages: Mapping[str, Stage]
    variants: tuple[Variant, ...]
    probes: Callable[[], list[Probe]]
    module: bool = field(default=False)
    beside: Mapping[str, Mapping[str, Stage]] = field(default_factory=dict)
    ask: Callable[..., Output] | None = None
    others: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    ways: tuple[Mapping[str, Stage], ...] = ()
    hides: bool = False
    activated: bool = False

    def first_state(self, weights: Mapping[str, Tensor], probe: Probe) -> State:
        """The state of a probe before the first stage. `weights` are those of the module."""
        if self.ask is not None:
            return State(weights=weights, probe=probe, keep=True if self.hides else None)
        return self._begin(weights, probe.build, probe.args)

    def _begin(self, weights: Mapping[str, Tensor], build: tuple[Any, ...], args: tuple[Any, ...]) -> State:
        return self.begin(weights, build, *args) if self.module else self.begin(*args)

    def result(self, begun: State, mistakes: Iterable[Variant] = (), *, after: Stage | None = None) -> State:
        """The final state of a probe with these mistakes made; `.out` is the output. Raises what a stage raises.

        `after` runs after each stage.
        """
        if self.ask is None:
            return self.call(begun, mistakes, after=after)
        chosen = tuple(mistakes)
        weights, probe = begun.weights, begun.probe

        def call(*args: Any) -> Any:
            state = self._begin(weights, probe.build, args)
            state.masking = getattr(begun, "masking", None)
            return self.call(state, chosen, after=after).out

        target = call if self.module else SimpleNamespace(**{**self.others, self.entry: call})
        return State(out=self.ask(target, *probe.args))

    def call(self, begun: State, mistakes: Iterable[Variant] = (), *, after: Stage | None = None) -> State:
        """The state after all stages of one call, with these mistakes made."""
        stages = dict(self.stages)
        for mistake in mistakes:
            stages.update(mistake.stages)
        state = copy.copy(begun)
        for stage in stages.values():
            stage(state)
            if after is not None:
                after(state)
        return state

    def assuming(self, id: str) -> Pipeline:
        """The pipeline with the mistake `id`, which a symptom or another function has already shown in the attempt."""
        return replace(self, stages={**self.stages, **self.beside[id]}, beside={})

    @functools.cached_property
    def in_ways(self) -> tuple[Pipeline, ...]:
        """The pipelines that compute in another right way, each in one of `ways`."""
        return tuple(replace(self, stages={**self.stages, **way}, ways=()) for way in self.ways)

    def __post_init__(self) -> None:
        replaced = [(variant.id, variant.stages) for variant in self.variants]
        replaced += [("a way", way) for way in self.ways]
        for id, stages in [*replaced, *self.beside.items()]:
            unknown = set(stages) - set(self.stages)
            if unknown:
                raise ValueError(f"{id} replaces {sorted(unknown)}, which {self.entry} does not have")


def variants(id: str, *replacements: Mapping[str, Stage], shows_in_values: bool = True) -> tuple[Variant, ...]:
    """The variants of one mistake, one for each mapping from stage names to what replaces them.

    *variants("softmax.query_axis", {"softmax": s.softmax_over_queries}),
    *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
    """
    return tuple(Variant(id=id, stages=stages, shows_in_values=shows_in_values) for stages in replacements)


def load(folder: Path) -> types.ModuleType:
    """The module `mistakes.py` of the kata in `folder`: PIPELINES, and any SYMPTOMS. Raises what its import raises."""
    name = f"attn_kata_mistakes_{folder.name}"
    spec = importlib.util.spec_from_file_location(name, folder / "mistakes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
