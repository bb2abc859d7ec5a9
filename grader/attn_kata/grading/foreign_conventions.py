"""Which failures of code by other names are its conventions, said and not graded; and what fails that no property asks."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.diagnosis.lines import forgets_what_it_drops
from attn_kata.diagnosis.symptoms import IN_PLACE, is_of_none
from attn_kata.grading.foreign import Read
from attn_kata.grading.foreign_verdict import fails_by_itself
from attn_kata.properties.failures import AttemptRaised, NoAnswer, PropertyFailed, RaisedWithoutMask
from attn_kata.readings import advice
from attn_kata.readings.candidates import building, dropouts
from attn_kata.readings.reading import ROLES
from attn_kata.report.model import Finding

_EVAL = "no_dropout_in_eval"
_DROPOUT_LEFT_OUT = "left out under this reading: the code's own dropout is not graded"
_DEVICE_LEFT_OUT = "left out under this reading: the device of the code's new tensors is reported, not graded"
_STRIDES, _OF_A_VIEW = "non_contiguous_inputs", "view size is not compatible"
_STRIDES_LEFT_OUT = "left out under this reading: the code needs contiguous inputs; this is reported, not graded"
_MASKED_GRADIENTS, _NAN_GRADIENT = "gradients_with_mask", re.compile(r"grad\[.*\] is nan\b")
_EMPTY_ROWS_LEFT_OUT = "left out under this reading: hidden queries have no key left; this is reported, not graded"
_OF_GRADIENTS = re.compile(r"@torch\.(?:no_grad|inference_mode)\b")
_GRADIENTS_LEFT_OUT = "left out under this reading: the code is for inference, and computes no gradients"
_BACKWARD = re.compile(r"^[ \t]*def \w*backward\w*\(", re.MULTILINE)
_BY_HAND_LEFT_OUT = "left out under this reading: the file has a backward of its own"
_BY_HAND = (
    "It writes into tensors that autograd needs (gradient.in_place). The file has a backward of its own, so this is not "
    "graded"
)
_EMPTY_ROWS = (
    "With padding, its gradients are NaN: its mask leaves padded queries without a key. The contract does not test this"
)
_RESULT_DROPPED = "one is dropped and not the other, for each query others"
_SCORES_DROPPED = re.compile(r"none is 0, but several of one|sum to 1 in train\(\), and none is 0")
_NOT_REACHED = "no weights reach it"  # of the output, which says nothing of the dropout
_DROPPED_WEIGHTS = (
    "left out under this reading: the code returns the weights after dropout (weights.after_dropout, by the contract)"
)


def settled(read: Read, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
    """The same, without the properties of dropout where the code drops something else, or nothing, without the device, and
    without inputs that are not in one piece.

    Dropout in train() is a convention of its author; that nothing is dropped in eval() is none, nor that it is weights
    that are dropped, and not the scores before the softmax.
    """
    read = _without_strides(_without_device(read, failures), findings, failures)
    read = _without_gradients(_without_empty_rows(read, failures), failures)
    read = _refusing(read, findings, failures)
    if "weights_before_dropout" in failures and "dropout_acts_on_weights" not in failures:
        return replace(read, left_out=read.left_out | {"weights_before_dropout": _DROPPED_WEIGHTS})
    about = [name for name in read.source.contract.left_out.get("dropout", ()) if name != _EVAL]
    if not about and forgets_what_it_drops(read.text.encode()):
        note = (
            "It drops something and does not use the result (dropout.never). The kata has none, so this is not graded"
        )
        read = replace(read, notes=(*read.notes, note))
    failed = next((name for name in about if name in failures), None)
    if failed is not None and failures[failed].message.endswith(_NOT_REACHED):
        return read
    if failed is None or _EVAL in failures or IN_PLACE.search(failures[failed].message):
        return read
    acts = failures.get("dropout_acts_on_weights")
    if acts is not None and _SCORES_DROPPED.search(acts.message):
        return read
    message = failures[failed].message
    id = "dropout.never" if message.startswith("nothing is dropped") else ""
    id = "dropout.on_output" if _RESULT_DROPPED in message else id
    if id == "dropout.never" and (forgets_what_it_drops(read.text.encode()) or _has_unused_dropout(read)):
        return read  # it is meant to drop
    note = f"Its dropout is not the contract's{f' ({id})' if id else ''}, and is not graded: in train(), {message}"
    left_out = read.left_out | dict.fromkeys(about, _DROPOUT_LEFT_OUT)
    return replace(read, left_out=left_out, notes=(*read.notes, note))


def _has_unused_dropout(read: Read) -> bool:
    structure = read.source.structure
    definition = structure.find(read.chosen.reading.entry)
    return definition is not None and dropouts.made_in_vain(definition, structure) is not None


def _without_device(read: Read, failures: dict[str, PropertyFailed]) -> Read:
    """Where all that it does on the processor is right, a tensor on the wrong device is said and decides nothing."""
    failure = failures.get("device")
    if failure is None or isinstance(failure, NoAnswer):
        return read
    note = f"By the contract this is device.default, and it is not graded: {failure.message}"
    return replace(read, left_out=read.left_out | {"device": _DEVICE_LEFT_OUT}, notes=(*read.notes, note))


def _without_strides(read: Read, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
    """Where a view of an input is all that raises, it is said and decides nothing: its callers give whole tensors."""
    failure = failures.get(_STRIDES)
    core = {one.property for one in findings if one.tier == "core" and one.property in failures}
    if failure is None or core - read.left_out.keys() != {_STRIDES} or _OF_A_VIEW not in failure.message:
        return read
    note = f"By the contract this is layout.view_of_strided, and it is not graded: {failure.message}"
    return replace(read, left_out=read.left_out | {_STRIDES: _STRIDES_LEFT_OUT}, notes=(*read.notes, note))


def _without_empty_rows(read: Read, failures: dict[str, PropertyFailed]) -> Read:
    """Where a mask hides queries too, NaN gradients are of rows without a key: they are said and decide nothing."""
    failure = failures.get(_MASKED_GRADIENTS)
    if failure is None or not read.chosen.reading.hides_queries or not _NAN_GRADIENT.search(failure.message):
        return read
    left_out = read.left_out | {_MASKED_GRADIENTS: _EMPTY_ROWS_LEFT_OUT}
    return replace(read, left_out=left_out, notes=(*read.notes, _EMPTY_ROWS))


def _without_gradients(read: Read, failures: dict[str, PropertyFailed]) -> Read:
    """Code that keeps keys from call to call is for inference, where it may say that it needs no gradients.

    And a function beside which the file has a backward of its own need not be one that autograd can go through.
    """
    in_place = {
        name: one for name, one in failures.items() if name.startswith("gradients") and IN_PLACE.search(one.message)
    }
    is_function = not read.chosen.reading.is_class
    if in_place and is_function and _BACKWARD.search(read.source.text.decode("utf-8", "replace")):
        left_out = read.left_out | dict.fromkeys(in_place, _BY_HAND_LEFT_OUT)
        return replace(read, left_out=left_out, notes=(*read.notes, _BY_HAND))
    if not read.chosen.reading.caches or not _OF_GRADIENTS.search(read.text):
        return read
    left_out = {name: _GRADIENTS_LEFT_OUT for name in failures if name.startswith("gradients")}
    return replace(read, left_out=read.left_out | left_out)


def _refusing(read: Read, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
    """Where all that fails raises, the code may have conditions of its own, or the reading may be wrong.

    But not what the code would raise however it is read.
    """
    core = [failures[one.property] for one in findings if one.tier == "core" and one.property in failures]
    raised = [one for one in core if isinstance(one, AttemptRaised)]
    if not core or read.chosen.doubt or len(raised) < len(core) or fails_by_itself(read, raised):
        return read
    return replace(read, raises=f"{advice.RAISES_FOR_SOME}: {core[0].message.removeprefix('raised ')}")


def with_more(
    read: Read, findings: list[Finding], failures: dict[str, PropertyFailed]
) -> tuple[list[Finding], dict[str, PropertyFailed]]:
    """The findings, and what the properties do not ask under the reading."""
    return _with_no_mask(read, *_with_shared(read, findings, failures))


def with_beside(read: Read, findings: list[Finding]) -> list[Finding]:
    """The findings, of which those fail that what the reading leaves out would break."""
    for one in read.chosen.beside:
        core = [each.property for each in findings if each.tier == "core" and each.outcome == "passed"]
        name = one.property if one.property in core else next(iter(core), "")
        findings = [
            replace(each, outcome="failed", message=one.words) if each.property == name else each for each in findings
        ]
    return findings


def _with_no_mask(
    read: Read, findings: list[Finding], failures: dict[str, PropertyFailed]
) -> tuple[list[Finding], dict[str, PropertyFailed]]:
    """The findings; where the code raises without a mask, because it uses None as a tensor, one that asks so fails."""
    raised = read.chosen.without_mask
    held = {one.property for one in findings if one.outcome == "passed"}
    name = next((one for one in ("values", "output_shape") if one in held), "")
    if raised is None or not is_of_none(raised.text) or not name:
        return findings, failures
    failure = RaisedWithoutMask(raised)
    changed = [
        replace(one, outcome="failed", message=failure.message) if one.property == name else one for one in findings
    ]
    return changed, failures | {name: failure}


def _with_shared(
    read: Read, findings: list[Finding], failures: dict[str, PropertyFailed]
) -> tuple[list[Finding], dict[str, PropertyFailed]]:
    """The findings, and that parameters fail where the code has one small layer for all heads, or for each of them.

    Or where it has layers that the module does not know.
    """
    shared, slices, reading = read.chosen.limits.shared, read.chosen.limits.slices, read.chosen.reading
    parts = {part for role in ROLES for part in reading.layer(role).weight.split(".")}
    listed = [name for name in reading.registered if name in parts]
    if not shared and not slices and not listed:
        return findings, failures
    if listed:
        return _with_parameters(
            f"its parameters are not all registered: {listed[0]} is a plain list or tensor", findings, failures
        )
    size = building.LOOK["E"], building.LOOK["D"]
    name = min(shared or slices, key=lambda one: not one.endswith("weight"))
    message = f"{name} has shape ({size[1]}, {size[1]}); the contract's has ({size[0]}, {size[0]})"
    if not shared:
        message = f"{name} has only the blocks ({size[1]}, {size[1]}) of each head; the contract's has the whole matrix"
    return _with_parameters(message, findings, failures)


def _with_parameters(
    message: str, findings: list[Finding], failures: dict[str, PropertyFailed]
) -> tuple[list[Finding], dict[str, PropertyFailed]]:
    """The findings, with parameters that are not the contract's."""
    changed = [
        replace(one, outcome="failed", message=message) if one.property == "parameters" else one for one in findings
    ]
    return changed, failures | {"parameters": PropertyFailed(message)}
