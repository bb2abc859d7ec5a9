"""Every message that passes between the processes of attn-kata, as a value; and how one becomes bytes and a value again.

Three conversations use them:

    face ⇄ engine ⇄ grading      one grading: its job, its source, its report; and the attempt processes that it needs
    engine ⇄ grader zygote       jobs for a process that has one kata loaded
    grading → attempt            requests (`Load` to `Call`), which `wire` carries together with their tensors

Everything here is trusted. What comes back from an attempt is a reply, which `wire` checks.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from torch import Tensor

# -------------------------------------------------------------------------------------------------------- the job


@dataclass(frozen=True, kw_only=True)
class Job:
    """One grading: what is graded, with what, and within which limits.

    `katas` and `solutions` are folders. `timeout` is the seconds for the whole grading and `call_seconds` those for one
    call. No `properties` means all. `denied` are folders that the attempt must not read. With less isolation than
    `least_tier` nothing of the attempt is run. `processor` is the one that the attempt's process runs on, where known.
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


# ------------------------------------------------------------------------------------ requests to an attempt's process

# An argument of a call: ("tensor", its place among the request's tensors), ("device", its name) or ("value", as it is).
Argument = tuple[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One thing asked of an attempt's process. `tensors` travel as bytes, with their strides; the rest as JSON."""

    tensors: tuple[Tensor, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Load(Request):
    """Run the attempt's source, which is the only tensor (bytes,). It has to define every name in `wanted`."""

    filename: str
    wanted: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Block(Request):
    """From now on refuse operations whose names contain one of these words."""

    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Build(Request):
    """Build a module of the class `name`, to be called `module` from then on.

    The last tensors are weights of the names in `weights`; they are copied in where the module has exactly these parameters.
    """

    name: str
    module: int
    args: tuple[Argument, ...] = ()
    seed: int | None = None
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoadWeights(Request):
    """Copy weights into a module by name, after converting it to their dtype. The tensors are in the order of the names."""

    module: int
    weights: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Call(Request):
    """Call the function `name`, or a module that was built, with `args`.

    cotangent        the place of a tensor: gradients of (result * cotangent).sum() are wanted, of each floating tensor among
                     the arguments and then of each parameter by name
    labels           the place of a tensor: the gradients are those of the mean cross-entropy
    weights          the last tensors are weights of these names, copied in first
    seed             torch's generator is seeded with it first
    training         the module's mode is set first
    inputs_after     the arguments' bytes are wanted as the call left them
    record           what runs is wanted as well
    lenient_views    `Tensor.view` copies where it would raise
    of_answers       its tensors are made of earlier answers, so nobody can ask it ahead
    """

    name: str | None = None
    module: int | None = None
    args: tuple[Argument, ...] = ()
    cotangent: int | None = None
    labels: int | None = None
    weights: tuple[str, ...] = ()
    seed: int | None = None
    training: bool | None = None
    inputs_after: bool = False
    record: bool = False
    lenient_views: bool = False
    of_answers: bool = False


REQUESTS: dict[str, type[Request]] = {kind.__name__: kind for kind in (Load, Block, Build, LoadWeights, Call)}


def request_to_json(request: Request, tensors: list[list[Any]]) -> bytes:
    """A request's fields, with what describes its tensors."""
    told = {field.name: getattr(request, field.name) for field in fields(request) if field.name != "tensors"}
    return json.dumps([type(request).__name__, told, tensors]).encode()


def request_of_json(data: bytes) -> tuple[type[Request], dict[str, Any], list[list[Any]]]:
    """The class, the fields and what describes the tensors of a request."""
    name, told, tensors = json.loads(data)
    return REQUESTS[name], {key: _as_tuples(value) for key, value in told.items()}, tensors


# --------------------------------------------------------------------------------- messages between trusted processes


class Message:
    """A message of a channel. `kind` is its four bytes there."""

    kind: ClassVar[bytes]


# The face asks.
@dataclass(frozen=True, kw_only=True)
class Grade(Message):
    """Grade the source that follows."""

    kind = b"GRAD"
    job: Job


@dataclass(frozen=True, kw_only=True)
class Source(Message):
    """An attempt's source. It travels past the engine, as it is."""

    kind = b"SRCE"
    source: bytes


@dataclass(frozen=True, kw_only=True)
class Cancel(Message):
    """Drop the grading that runs."""

    kind = b"STOP"


# The engine, or the grading itself, answers the face.
@dataclass(frozen=True, kw_only=True)
class Ready(Message):
    """Torch is loaded."""

    kind = b"REDY"


@dataclass(frozen=True, kw_only=True)
class Graded(Message):
    """The report, as `Report.to_dict` gives it."""

    kind = b"REPT"
    report: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cancelled(Message):
    """The grading was dropped."""

    kind = b"STPD"


@dataclass(frozen=True, kw_only=True)
class IsolationTooWeak(Message):
    """Less isolation is in force than the job asks for at least; nothing of the attempt was run."""

    kind = b"WEAK"
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fault(Message):
    """A fault of our own, with a traceback where there is one."""

    kind = b"FALT"
    text: str


# The grading tells the engine.
@dataclass(frozen=True, kw_only=True)
class SourceRead(Message):
    """The source was read: what comes from the face now is for the engine again."""

    kind = b"READ"


@dataclass(frozen=True, kw_only=True)
class NewAttempt(Message):
    """Start a fresh attempt process. Where it has to connect, `port` and `token` say where to."""

    kind = b"NEXT"
    port: int = 0
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class EndAttempt(Message):
    """End the attempt process. `patient` lets one that is dying do so, which tells a crash from our kill."""

    kind = b"KILL"
    patient: bool = False


@dataclass(frozen=True, kw_only=True)
class GradingDone(Message):
    """The report is made."""

    kind = b"DONE"


@dataclass(frozen=True, kw_only=True)
class ReportSent(Message):
    """The whole report is with the face."""

    kind = b"TOLD"


# The engine tells the grading.
@dataclass(frozen=True, kw_only=True)
class AttemptEnded(Message):
    """The attempt process is gone: `how` in words, or "" where we ended it; what it printed, where the engine read it."""

    kind = b"DEAD"
    how: str = ""
    printed: bytes = b""


@dataclass(frozen=True, kw_only=True)
class SendReport(Message):
    """Send the report to the face now: from here on the grading is not cancelled in the middle of a message."""

    kind = b"TELL"


# The engine and its grader zygote.
@dataclass(frozen=True, kw_only=True)
class ForkAhead(Message):
    """Fork the next grader, which waits for its job."""

    kind = b"FORK"


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
    """What is slow the first time was done once."""

    kind = b"WARM"


# The spawning engine and its attempt process.
@dataclass(frozen=True, kw_only=True)
class Join(Message):
    """Connect to the grading at this port of this machine, show the token, work in `folder`, end with the engine."""

    kind = b"JOIN"
    port: int
    token: str
    folder: str
    engine: int


MESSAGES: dict[bytes, type[Message]] = {
    message.kind: message
    for message in (
        Grade, Source, Cancel, Ready, Graded, Cancelled, IsolationTooWeak, Fault, SourceRead, NewAttempt, EndAttempt,
        GradingDone, ReportSent, AttemptEnded, SendReport, ForkAhead, StartJob, EndGrader, GraderEnded, Prewarmed, Join,
    )
}  # fmt: skip


def encode(message: Message) -> bytes:
    """A message's payload: JSON, but for a source, which is sent as it is."""
    if isinstance(message, Source):
        return message.source
    return json.dumps(_fields(message)).encode()


def decode(kind: bytes, payload: bytes) -> Message:
    """The message of this kind and payload. Raises ValueError for a kind that there is not."""
    if kind not in MESSAGES:
        raise ValueError(f"a message of the kind {kind!r}")
    if kind == Source.kind:
        return Source(source=payload)
    told = json.loads(payload)
    if "job" in told:
        told["job"] = Job(**{key: _as_tuples(value) for key, value in told["job"].items()})
    if "printed" in told:
        told["printed"] = base64.b64decode(told["printed"])
    if "notes" in told:
        told["notes"] = tuple(told["notes"])
    return MESSAGES[kind](**told)


def _fields(value: Any) -> dict[str, Any]:
    told = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if isinstance(part, Job):
            part = _fields(part)
        elif isinstance(part, bytes):
            part = base64.b64encode(part).decode()
        told[field.name] = part
    return told


def _as_tuples(value: Any) -> Any:
    """Lists of JSON as the tuples that they were."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
