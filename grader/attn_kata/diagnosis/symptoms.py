"""Mistakes that do not show in values. They are found from the property that they break, or from an exception."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from attn_kata.diagnosis import lines, own_exceptions
from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.properties.failures import NAN_ON_BOTH_SIDES, AttemptRaised, PropertyFailed, Raised, RaisedWithoutMask


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The observations of the hidden tests and the probes."""

    failures: dict[str, PropertyFailed]  # by property
    held: frozenset[str]  # properties that hold
    raised: tuple[Raised, ...]  # exceptions in the probes
    source: str
    code: str  # the source without comments and docstrings; the full source if it cannot be parsed
    values_right: bool  # the probes' values are the reference's
    unsteady: bool  # two equal calls gave different answers
    parameters: dict[str, tuple[int, ...]]  # of a built module; empty for functions
    gradients_differ: bool = False  # from those of the mistakes that reproduce its values
    nan_where_masked: bool = False  # all probes with a masked key gave only NaN
    explained: bool = False  # sets of mistakes give all its values, or they are right
    found: frozenset[str] = frozenset()  # mistakes that reproduce the values of an entry point
    needs_mask: bool = False  # every probe without a mask raised about None, and those with one were answered
    fixed_rank: bool = False  # all probes with one number of dimensions were answered, and no others

    def all_raised(self) -> tuple[Raised, ...]:
        """All exceptions of the attempt, in the hidden tests and in the probes."""
        told = tuple(failure.raised for failure in self.failures.values() if isinstance(failure, AttemptRaised))
        return told + self.raised

    def line_text(self, line: int | None) -> str:
        """A line of the source, or ""."""
        lines = self.source.split("\n")
        return lines[line - 1] if line and 0 < line <= len(lines) else ""


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """A mistake that `shows` recognises: it returns the line, 0 for no known line, or None for no such mistake."""

    id: str
    shows: Callable[[Evidence], int | None]


def breaks(id: str, property: str, *, unless: tuple[str, ...] = (), unless_held: str = "", saying: str = "") -> Symptom:
    """The mistake `id`, if `property` is broken, no property of `unless` is broken, `unless_held` does not hold, and the
    message matches `saying`.
    """

    def shows(evidence: Evidence) -> int | None:
        failure = evidence.failures.get(property)
        if failure is None or unless_held in evidence.held or any(other in evidence.failures for other in unless):
            return None
        if NAN_ON_BOTH_SIDES in failure.message:  # which says nothing of the property
            return None
        return 0 if re.search(saying, failure.message) else None

    return Symptom(id=id, shows=shows)


def _view_of_strided(evidence: Evidence) -> int | None:
    for raised in evidence.all_raised():
        if "view size is not compatible with input tensor's size and stride" in raised.text:
            return raised.line or 0
    return None


_OF_BATCH = r"^(?!.*(?:mask|causal|keep|tri)\w*\.T\b).*(?<!self)\.T\b"  # .T of a mask may be of two dimensions


def _transposed_by_T(evidence: Evidence) -> int | None:
    for raised in evidence.all_raised():
        text = evidence.line_text(raised.line)
        refused = raised.types[0] == "AssertionError"  # in words of the code's own
        if not refused and re.search(_OF_BATCH, text) and re.search(r"size|shape|dimension|\.T", raised.text):
            return raised.line or 0
    return None


_FLOAT32_OF_FLOAT64 = re.compile(r"inputs of float64 give (?:an output|as \w+ a tensor) of float32")
_NARROWS = r"\.float\(\)|float32|FloatTensor"
_FACTORY = r"torch\.(?:zeros|ones|full|empty|tensor|arange|eye|rand|randn|linspace)\((?![^\n]*dtype)"


def _forced_float32(evidence: Evidence) -> int | None:
    narrows = re.search(_NARROWS, evidence.code)
    for raised in evidence.all_raised():
        if narrows and "NotImplementedError" not in raised.types and _float_meets_double(raised.text):
            return raised.line or 0
    failure = evidence.failures.get("output_dtype")
    if narrows and failure is not None and _FLOAT32_OF_FLOAT64.search(failure.message):
        return 0
    return None


def _float_meets_double(text: str) -> bool:
    """Whether an exception is about float32 beside float64. One about another dtype, as of a uint8 mask, is not."""
    return re.search("float", text, re.IGNORECASE) is not None and re.search("double", text, re.IGNORECASE) is not None


def _default_dtype(evidence: Evidence) -> int | None:
    if re.search(_NARROWS, evidence.code) or not re.search(_FACTORY, evidence.code):
        return None
    for raised in evidence.all_raised():
        if _float_meets_double(raised.text):
            return raised.line or 0
    failure = evidence.failures.get("output_dtype")
    return 0 if failure is not None and _FLOAT32_OF_FLOAT64.search(failure.message) else None


def _not_boolean(evidence: Evidence) -> int | None:
    for raised in evidence.all_raised():
        if re.search(
            r"only supports boolean masks|bitwise_not|operator.invert|condition to be a boolean tensor", raised.text
        ):
            return raised.line or 0
    return None


def _truth_of_a_tensor(evidence: Evidence) -> int | None:
    """`if mask:` raises for more than one number."""
    return next((raised.line or 0 for raised in evidence.all_raised() if asks_for_truth(raised.text)), None)


def asks_for_truth(message: str) -> bool:
    """Whether an exception is about a tensor used as a condition."""
    return "Boolean value of Tensor with more than one value is ambiguous" in message


# masked_fill(None == 0, …) is given a bool that is no tensor.
_OF_NONE = re.compile(
    r"NoneType|(?:masked_fill|where)\w*\(\) received an invalid combination of arguments - got \([^()=]*\bbool\b"
)
_OF_A_MASK = re.compile(r"(?i)mask|msk|keep|valid|allowed")


def is_of_none(message: str) -> bool:
    """Whether an exception is about None where a tensor is meant."""
    return _OF_NONE.search(message) is not None


def _no_mask(evidence: Evidence) -> int | None:
    """It raises for the mask that is not given: in every call without one, and in a line about masks."""
    for failure in evidence.failures.values():
        if isinstance(failure, RaisedWithoutMask):
            return failure.raised.line or 0
    told = (raised for raised in evidence.raised if evidence.needs_mask and is_of_none(raised.text))
    return next((one.line or 0 for one in told if _OF_A_MASK.search(evidence.line_text(one.line))), None)


def _bool_arithmetic(evidence: Evidence) -> int | None:
    told = (raised for raised in evidence.all_raised() if "bool tensor is not supported" in raised.text)
    return next((raised.line or 0 for raised in told), None)


def _integer_not(evidence: Evidence) -> int | None:
    if evidence.values_right or _not_boolean(evidence) is not None:  # torch has refused it
        return None
    return 0 if lines.inverts_integers(evidence.source.encode()) else None


def _raised_scores(evidence: Evidence) -> int | None:
    """Right in float64: a large number beside a score leaves it few digits."""
    rounded = evidence.values_right and evidence.failures.keys() & {"float32", "large_scores", "half_precision"}
    return 0 if rounded and lines.raises_kept_scores(evidence.source.encode()) else None


def _fixed_size(evidence: Evidence) -> int | None:
    """It raises for a size beyond that of its triangle; where it answers, the values are right."""
    raised = any(isinstance(one, AttemptRaised) and about_shapes(one.raised.text) for one in evidence.failures.values())
    return lines.find("mask.fixed_size", evidence.source.encode()) if evidence.values_right and raised else None


def _kept_mask(evidence: Evidence) -> int | None:
    """The first call is right, and a later one with another mask or other sizes is not."""
    told = evidence.failures.keys() & {
        "mask",
        "output_shape",
        "sizes_may_change",
        "values_with_keep",
        "lengths_are_free",
    }
    first = evidence.values_right or not evidence.held & {"values"}
    return lines.find("mask.kept", evidence.source.encode()) if told and first else None


def _fixed_rank(evidence: Evidence) -> int | None:
    """Right for one number of dimensions (the property needs that), and for no other."""
    if not evidence.fixed_rank and "any_leading_dimensions" not in evidence.failures:
        return None
    if _transposed_by_T(evidence) is not None or _squeezed(evidence) is not None:  # they say more
        return None
    return next((raised.line or 0 for raised in evidence.all_raised()), 0)


def _detached(evidence: Evidence) -> int | None:
    if not (evidence.gradients_differ or (evidence.values_right and _wrong_gradients(evidence))):
        return None
    return 0 if lines.leaves_the_graph(evidence.source.encode()) else None


def _changed_in_place(evidence: Evidence) -> int | None:
    """Autograd says so, in the backward pass, or for a view of which it keeps the whole."""
    told = any(isinstance(one, AttemptRaised) and IN_PLACE.search(one.message) for one in evidence.failures.values())
    return (lines.find("gradient.in_place", evidence.source.encode()) or 0) if told else None


IN_PLACE = re.compile(r"modified by an inplace operation|is a view and is being modified inplace")

# For empty rows, empty slices and extreme inputs, gradients are NaN or infinite for other reasons.
_GRADIENTS = re.compile(r"gradients(_with_\w+|_in_train(ing)?)?")


def _wrong_gradients(evidence: Evidence) -> bool:
    told = [failure for name, failure in evidence.failures.items() if _GRADIENTS.fullmatch(name)]
    return any(not isinstance(one, AttemptRaised) and not re.search(r"\b(?:nan|inf)\b", one.message) for one in told)


def _zero_times_inf(evidence: Evidence) -> int | None:
    return 0 if evidence.nan_where_masked and lines.multiplies_mask_by_infinity(evidence.source.encode()) else None


def _unregistered(evidence: Evidence) -> int | None:
    failure = evidence.failures.get("parameters") or evidence.failures.get("output_shape")
    if failure is None or "its parameters are" not in failure.message:
        return None
    if "is a plain list" in failure.message:
        return lines.find("module.unregistered", evidence.source.encode()) or 0
    listed = re.search(r"self\.\w+\s*=\s*[\[{(][^\n]*nn\.Linear|self\.\w+\.append\(\s*nn\.", evidence.code)
    return 0 if listed else None


def _rebuilt(evidence: Evidence) -> int | None:
    if not lines.makes_layers_when_called(evidence.source.encode()):
        return None
    if _told_parameters(evidence):
        return 0 if _unregistered(evidence) is None else None
    return 0 if evidence.unsteady or not evidence.values_right else None  # the copied weights are not used


def _told_parameters(evidence: Evidence) -> bool:
    return any("its parameters" in failure.message for failure in evidence.failures.values())


def _default_device(evidence: Evidence) -> int | None:
    failure = evidence.failures.get("device")
    if failure is None or "default device" not in failure.message:
        return None
    return 0 if _rebuilt(evidence) is None else None  # a layer that a call makes is on the default device


def _squeezed(evidence: Evidence) -> int | None:
    """As told where no size is 1, as in the probes; a shape is wrong, or an exception raised, where one is."""
    shapes = [name for name in evidence.failures if name.endswith("shape")]
    told = evidence.values_right or evidence.explained
    return 0 if shapes and told and lines.squeezes_all(evidence.source.encode()) else None


def _tuple_returned(evidence: Evidence) -> int | None:
    told = (re.search(r"returned a tuple of \d+; .* asks for one", one.message) for one in evidence.failures.values())
    return 0 if any(told) else None


def _alone(evidence: Evidence) -> int | None:
    told = any(
        "returned one tensor; the contract asks for (" in failure.message for failure in evidence.failures.values()
    )
    return 0 if told else None


def _named_parameters(evidence: Evidence) -> tuple[set[str], set[str]]:
    """The parameters that the attempt lacks, and those that it has beside the contract's."""
    for failure in evidence.failures.values():
        told = re.search(r"its parameters are (.+); the contract names (.+)", failure.message)
        if told is not None:
            has, names = (set(re.findall(r"[\w.]+", part)) for part in told.groups())
            return names - has, has - names
    return set(), set()


def _bias_missing(evidence: Evidence) -> int | None:
    lacks, beside = _named_parameters(evidence)
    return 0 if lacks and not beside and all(name.endswith(".bias") for name in lacks) else None


def _bias_unwanted(evidence: Evidence) -> int | None:
    lacks, beside = _named_parameters(evidence)
    return 0 if beside and not lacks and all(name.endswith(".bias") for name in beside) else None


def _one_layer_for_all_heads(evidence: Evidence) -> int | None:
    for failure in evidence.failures.values():
        told = re.search(r"_proj\.weight has shape \((\d+), \1\); the contract's has \((\d+), \2\)", failure.message)
        if told is not None:
            return 0 if int(told[1]) < int(told[2]) and int(told[2]) % int(told[1]) == 0 else None
    return None


def _blocks_of_heads(evidence: Evidence) -> int | None:
    """A projection for each head that acts on the columns of that head alone."""
    told = [re.search(r"_proj\.weight has only the blocks", one.message) for one in evidence.failures.values()]
    return 0 if any(told) else None


def _probability_of_its_own(evidence: Evidence) -> int | None:
    failure = next((evidence.failures[name] for name in _ALIKE if name in evidence.failures), None)
    if failure is None or isinstance(failure, AttemptRaised):
        return None
    return 0 if lines.drops_by_a_number(evidence.source.encode()) else None


_ALIKE = ("train_and_eval_alike", "train_and_eval_agree", "alike_in_train_and_eval")  # as katas name the property


def _dropout_always(evidence: Evidence) -> int | None:
    """The line of a dropout without a mode, where equal calls differ and no property of the kata is about dropout."""
    asked = evidence.held | evidence.failures.keys()
    if not evidence.unsteady or any("dropout" in name or (name in _ALIKE and name in evidence.held) for name in asked):
        return None
    source = evidence.source.encode()
    by_a_number = any(name in evidence.failures for name in _ALIKE) and lines.drops_by_a_number(source)
    return None if by_a_number else lines.find("dropout.always", source)


def _mask_cut(evidence: Evidence) -> int | None:
    """A mask of two dimensions is right and one that broadcasts is not, and the code takes the first rows and columns of it."""
    failure = evidence.failures.get("mask_broadcasts")
    if failure is None or "mask" not in evidence.held:
        return None
    cut = re.compile(r"mask\w*\[\s*(\.\.\.,)?\s*:[^,\]:]+,\s*:[^,\]:]+\]")
    return next((n for n, line in enumerate(evidence.source.split("\n"), start=1) if cut.search(line)), None)


def heads_first(evidence: Evidence) -> int | None:
    """The line of a constructor that takes the number of heads first, where the contract has it later."""
    if not any(name in evidence.failures for name in ("parameters", "output_shape")):
        return None
    return lines.takes_heads_first(evidence.source.encode())


def _no_maximum(evidence: Evidence) -> int | None:
    failure = evidence.failures.get("large_scores")
    if failure is None or not re.search(r"\b(?:nan|inf)\b", failure.message):
        return None
    if re.search(
        r"\b(?:amax|max|maximum|logsumexp)\(", evidence.code
    ):  # a maximum is subtracted: the NaN has another cause
        return None
    return 0 if re.search(r"\bexp\(", evidence.code) else None


def _raises(id: str) -> Callable[[Evidence], int | None]:
    """The line of the first exception that is this mistake by itself."""

    def shows(evidence: Evidence) -> int | None:
        for one in evidence.all_raised():
            if own_exceptions.mistake(one, evidence.code, evidence.line_text(one.line)) == id:
                return one.line or 0
        return None

    return shows


def _by_its_lines(
    lines_of: Callable[[bytes], list[int]], *, besides: Callable[[bytes], list[int]] = lambda source: []
) -> Callable[[Evidence], int | None]:
    """The first line that is wrong whatever the code is meant to do, where its numbers are not explained.

    `besides`: the lines of another mistake, which says more.
    """

    def shows(evidence: Evidence) -> int | None:
        source = evidence.source.encode()
        told = {lines.find("mask.lost", source)} if "mask.lost" in evidence.found else set()
        found = [] if evidence.explained or evidence.values_right else lines_of(source)
        return next((line for line in found if line not in {*told, *besides(source)}), None)

    return shows


ZERO_TIMES_INF = "mask.zero_times_inf"
FIXED_RANK = "layout.fixed_rank"

# These apply to every kata with properties of these names.
EVERYWHERE = (
    Symptom(id="layout.view_of_strided", shows=_view_of_strided),
    Symptom(id="layout.T_of_batch", shows=_transposed_by_T),
    Symptom(id="numerics.forced_float32", shows=_forced_float32),
    Symptom(id="numerics.default_dtype", shows=_default_dtype),
    Symptom(id="mask.not_boolean", shows=_not_boolean),
    Symptom(id="mask.as_condition", shows=_truth_of_a_tensor),
    Symptom(id="mask.none", shows=_no_mask),
    Symptom(id="mask.bool_arithmetic", shows=_bool_arithmetic),
    Symptom(id="mask.integer_not", shows=_integer_not),
    Symptom(id="mask.raised", shows=_raised_scores),
    Symptom(id=FIXED_RANK, shows=_fixed_rank),
    Symptom(id="mask.fixed_size", shows=_fixed_size),
    Symptom(id="mask.kept", shows=_kept_mask),
    Symptom(id="gradient.detached", shows=_detached),
    Symptom(id="gradient.in_place", shows=_changed_in_place),
    Symptom(id="mask.cut", shows=_mask_cut),
    Symptom(id=ZERO_TIMES_INF, shows=_zero_times_inf),
    Symptom(id="module.unregistered", shows=_unregistered),
    Symptom(id="module.rebuilt", shows=_rebuilt),
    breaks("inputs.modified", "inputs_unmodified", saying="was changed by the call"),
    Symptom(id="numerics.no_max", shows=_no_maximum),
    Symptom(id="device.default", shows=_default_device),
    Symptom(id="layout.squeeze", shows=_squeezed),
    Symptom(id="output.tuple", shows=_tuple_returned),
    Symptom(id="output.alone", shows=_alone),
    Symptom(id="parameters.no_bias", shows=_bias_missing),
    Symptom(id="parameters.extra_bias", shows=_bias_unwanted),
    Symptom(id="project.shared", shows=_one_layer_for_all_heads),
    Symptom(id="project.slices", shows=_blocks_of_heads),
    Symptom(id="dropout.fixed", shows=_probability_of_its_own),
    Symptom(id="dropout.always", shows=_dropout_always),
    Symptom(id="python.no_return", shows=_by_its_lines(lines.return_nothing)),
    Symptom(id="mask.lost", shows=_by_its_lines(lines.drop_masks)),
    Symptom(id="python.unused_result", shows=_by_its_lines(lines.have_no_effect, besides=lines.drop_masks)),
    Symptom(id="mask.zero_fill", shows=_by_its_lines(lines.fill_with_almost_nothing)),
    *(Symptom(id=id, shows=_raises(id)) for id in own_exceptions.IDS),
)
