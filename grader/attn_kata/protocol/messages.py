"""Every message between the processes of attn-kata, as a dataclass, with its encoding.

There are three conversations:

    face ⇄ engine ⇄ grading      one grading: its job, its source, its report, and its attempt processes
    engine ⇄ grader zygote       jobs for a process that has one kata loaded
    grading → attempt            requests (`Load` to `Call`), which `wire` carries with their tensors

All of these are trusted. An attempt sends only replies, and `wire` checks those.
"""

from __future__ import annotations

import base64
import json
import marshal
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from torch import Tensor

# -------------------------------------------------------------------------------------------------------- the job


@dataclass(frozen=True, kw_only=True)
class Job:
    """One grading: the kata, the attempt's name, and the limits.

    `katas` and `solutions` are folders. `timeout` is in seconds for the whole grading, `call_seconds` for one call. Empty
    `properties` means all. `denied` are folders that the attempt must not read. If the isolation is weaker than `least_tier`,
    the attempt is not run. `processor` is the processor of the attempt process, if known.
    """

    slug: str
    katas: str
    solutions: str
    attempt: str
    seed: int = 0
    timeout: float = 60.0
    call_seconds: float = 10.0
    properties: tuple[str, ...] = ()
    diagnose: bool = True
    tier: int = 0
    least_tier: int = 0
    denied: tuple[str, ...] = ()
    processor: int | None = None
    reads: bool = False
    flags: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------ requests to an attempt process

# An argument of a call: ("tensor", its index in the request's tensors), ("device", its name), ("value", the value) or
# ("opaque", (number, place, operations)), an opaque part that an earlier call returned.
Argument = tuple[str, Any]

OPAQUE = "opaque "  # the first word of the name of a part that stays in the attempt process
AS_GIVEN = "as given"  # the whole answer to a Build whose module has the parameters of its weights, and no others


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to an attempt process. `tensors` are sent as bytes with their strides, all other fields with marshal.

    Requests are equal if all other fields are.
    """

    tensors: tuple[Tensor, ...] = field(default=(), compare=False)  # what == of tensors says is no bool


@dataclass(frozen=True, kw_only=True)
class Load(Request):
    """Run the attempt's source, which is the only tensor, (bytes,). The source must define every name in `wanted`.

    definitions    run its definitions only, and skip those that raise: code that was not written for a kata may import what
                   is not installed, and train a model at its top level
    """

    filename: str
    wanted: tuple[str, ...] = ()
    seed: int = 0
    definitions: bool = False


@dataclass(frozen=True, kw_only=True)
class Adapt(Request):
    """Run an adapter, the only tensor, (bytes,), beside the attempt's definitions. Its names come before the attempt's."""


@dataclass(frozen=True, kw_only=True)
class Block(Request):
    """Block the operations whose names contain one of these words, for good."""

    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Build(Request):
    """Build a module of the class `name`. Later requests name it by the number `module`.

    The last tensors are weights, with the names in `weights`. They are copied in if the module has exactly these parameters,
    and the answer is AS_GIVEN. Otherwise it has the names and shapes of the parameters.
    """

    name: str
    module: int
    args: tuple[Argument, ...] = ()
    seed: int | None = None
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoadWeights(Request):
    """Convert a module to the dtype of the weights, and copy them in. The tensors are in the order of the names."""

    module: int
    weights: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Call(Request):
    """Call the function `name`, or the built module `module`, with `args`.

    returns          names of the parts of a result that is a tuple or a list; empty if the result is one tensor. A part
                     "opaque NAME" stays in the attempt process, and only its form is returned
    number           the number under which opaque parts are kept
    cotangents       for each tensor of the result the index of a tensor or None: also return gradients of the sum of all
                     (tensor * cotangent).sum(), for each floating-point argument and then for each parameter by name
    labels           index of a tensor: return gradients of the mean cross-entropy instead
    weights          the last tensors are weights with these names; copy them in first
    seed             seed torch's generator with it first
    training         set the module's mode first
    inputs_after     also return the arguments as the call left them
    record           also return a record of the operations
    devices          also return which operations would mix devices if the inputs were not on the default one
    measure          also return what the operations cost; runs without gradients. Only one of the three can be asked for
    lenient_views    `Tensor.view` copies instead of raising
    trace            instead of the result, return what the operations of the call gave, up to an exception of its own
    of_answers       its tensors are made from earlier answers, so it cannot be prefetched
    """

    name: str | None = None
    module: int | None = None
    args: tuple[Argument, ...] = ()
    returns: tuple[str, ...] = ()
    number: int | None = None
    cotangents: tuple[int | None, ...] = ()
    labels: int | None = None
    weights: tuple[str, ...] = ()
    seed: int | None = None
    training: bool | None = None
    inputs_after: bool = False
    record: bool = False
    devices: bool = False
    measure: bool = False
    lenient_views: bool = False
    trace: bool = False
    of_answers: bool = False


REQUESTS: dict[str, type[Request]] = {kind.__name__: kind for kind in (Load, Adapt, Block, Build, LoadWeights, Call)}


# Of marshal's formats this one gives the same bytes for equal values, whoever else refers to them.
_MARSHAL_VERSION = 2

# The fields of each request that are encoded, with their defaults.
_DEFAULTS = {kind: [(each.name, each.default) for each in fields(kind) if each.compare] for kind in REQUESTS.values()}


def request_to_bytes(request: Request, tensors: list[tuple[Any, ...]]) -> bytes:
    """A request's fields, except those that have their default, and the descriptions of its tensors.

    With marshal, a tenth of the time of JSON: both ends are the same Python, and the sender is trusted.
    """
    values = {}
    for name, default in _DEFAULTS[type(request)]:
        value = getattr(request, name)
        if value != default or type(value) is not type(default):
            values[name] = value
    return marshal.dumps((type(request).__name__, values, tensors), _MARSHAL_VERSION)


def request_of_bytes(data: bytes | bytearray) -> tuple[type[Request], dict[str, Any], list[tuple[Any, ...]]]:
    """The class, the fields and the descriptions of the tensors of a request."""
    name, values, tensors = marshal.loads(data)
    return REQUESTS[name], values, tensors


# --------------------------------------------------------------------------------- messages between trusted processes


class Message:
    """A message of a channel. `kind` is four bytes, which identify it there."""

    kind: ClassVar[bytes]


# From the face.
@dataclass(frozen=True, kw_only=True)
class Grade(Message):
    """Grade the source that follows."""

    kind = b"GRAD"
    job: Job


@dataclass(frozen=True, kw_only=True)
class Source(Message):
    """An attempt's source, as raw bytes. The grading reads it; the engine does not."""

    kind = b"SRCE"
    source: bytes


@dataclass(frozen=True, kw_only=True)
class Cancel(Message):
    """Cancel the running grading."""

    kind = b"STOP"


# To the face, from the engine or the grading.
@dataclass(frozen=True, kw_only=True)
class Ready(Message):
    """Torch is loaded."""

    kind = b"REDY"


@dataclass(frozen=True, kw_only=True)
class Graded(Message):
    """The report, as `Report.to_dict` returns it."""

    kind = b"REPT"
    report: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cancelled(Message):
    """The grading was cancelled."""

    kind = b"STPD"


@dataclass(frozen=True, kw_only=True)
class IsolationTooWeak(Message):
    """The isolation is weaker than the job requires, so the attempt was not run."""

    kind = b"WEAK"
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fault(Message):
    """A fault of attn-kata itself, with a traceback if there is one."""

    kind = b"FALT"
    text: str


# From the grading to the engine.
@dataclass(frozen=True, kw_only=True)
class SourceRead(Message):
    """The grading has read the source. From now on the engine reads the face's messages again."""

    kind = b"READ"


@dataclass(frozen=True, kw_only=True)
class NewAttempt(Message):
    """Start a fresh attempt process. A spawned one connects to `port` and sends `token`."""

    kind = b"NEXT"
    port: int = 0
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class EndAttempt(Message):
    """End the attempt process. With `patient`, a crashing one first gets a moment to end by itself."""

    kind = b"KILL"
    patient: bool = False


@dataclass(frozen=True, kw_only=True)
class GradingDone(Message):
    """The report is ready."""

    kind = b"DONE"


@dataclass(frozen=True, kw_only=True)
class ReportSent(Message):
    """The whole report was sent to the face."""

    kind = b"TOLD"


# From the engine to the grading.
@dataclass(frozen=True, kw_only=True)
class AttemptEnded(Message):
    """The attempt process is gone. `how` is in words, or "" if we ended it. `printed` has the prints that the engine read."""

    kind = b"DEAD"
    how: str = ""
    printed: bytes = b""


@dataclass(frozen=True, kw_only=True)
class SendReport(Message):
    """Send the report to the face now. From here on the grading is not cancelled, so no message is cut off."""

    kind = b"TELL"


# Between the engine and its grader zygote.
@dataclass(frozen=True, kw_only=True)
class ForkAhead(Message):
    """Fork the next grader, which waits for a job with the kata of this one."""

    kind = b"FORK"
    job: Job


@dataclass(frozen=True, kw_only=True)
class StartJob(Message):
    """Begin this job. The descriptors of the grading follow."""

    kind = b"JOB "
    job: Job


@dataclass(frozen=True, kw_only=True)
class EndGrader(Message):
    """Kill the grader."""

    kind = b"END "


@dataclass(frozen=True, kw_only=True)
class GraderEnded(Message):
    """The grader is gone."""

    kind = b"GONE"


@dataclass(frozen=True, kw_only=True)
class Prewarmed(Message):
    """A process has done once what is slow the first time."""

    kind = b"WARM"


# From a spawning engine to its attempt process.
@dataclass(frozen=True, kw_only=True)
class Join(Message):
    """Connect to the grading at this local port, send the token, and work in `folder`. `engine` is the parent's process id."""

    kind = b"JOIN"
    port: int
    token: str
    folder: str
    engine: int


MESSAGES: dict[bytes, type[Message]] = {
    message.kind: message
    for message in (
        Grade,
        Source,
        Cancel,
        Ready,
        Graded,
        Cancelled,
        IsolationTooWeak,
        Fault,
        SourceRead,
        NewAttempt,
        EndAttempt,
        GradingDone,
        ReportSent,
        AttemptEnded,
        SendReport,
        ForkAhead,
        StartJob,
        EndGrader,
        GraderEnded,
        Prewarmed,
        Join,
    )
}


def encode(message: Message) -> bytes:
    """A message's payload: raw bytes for a source, JSON for all others."""
    if isinstance(message, Source):
        return message.source
    return json.dumps(_fields(message)).encode()


def decode(kind: bytes, payload: bytes) -> Message:
    """The message of this kind and payload. Raises ValueError for an unknown kind."""
    if kind not in MESSAGES:
        raise ValueError(f"a message of the kind {kind!r}")
    if kind == Source.kind:
        return Source(source=payload)
    values = json.loads(payload)
    if "job" in values:
        values["job"] = Job(**{key: _as_tuples(value) for key, value in values["job"].items()})
    if "printed" in values:
        values["printed"] = base64.b64decode(values["printed"])
    if "notes" in values:
        values["notes"] = tuple(values["notes"])
    return MESSAGES[kind](**values)


def _fields(value: Any) -> dict[str, Any]:
    values = {}
    for each in fields(value):
        part = getattr(value, each.name)
        if isinstance(part, Job):
            part = _fields(part)
        elif isinstance(part, bytes):
            part = base64.b64encode(part).decode()
        values[each.name] = part
    return values


def _as_tuples(value: Any) -> Any:
    """JSON has no tuples: turn its lists back into tuples."""
    return tuple([_as_tuples(part) if type(part) is list else part for part in value]) if type(value) is list else value
