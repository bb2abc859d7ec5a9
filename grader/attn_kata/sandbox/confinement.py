"""The layers in their order: what this system has, what is built once in the engine, what each child puts in force."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from attn_kata.sandbox import (
    descriptors,
    landlock,
    limits,
    namespaces,
    privileges,
    process,
    readable,
    seccomp,
    surroundings,
    syscall_table,
)
from attn_kata.sandbox.errors import IsolationError

PRACTICE, GUARDED, JAIL = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Available:
    """What this system has, as far as it tells without being tried; a note says what is missing and what that opens."""

    system: str
    landlock_abi: int
    seccomp: bool
    namespaces: bool
    highest_tier: int
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one child is to be confined to. `folder` exists already; `memory_bytes` come on top of what is mapped."""

    tier: int
    keep_descriptors: tuple[int, ...]
    folder: str
    cpu_seconds: int
    memory_bytes: int
    file_bytes: int
    parent_pid: int


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What was built once, in the engine, for all children. The ruleset is an open descriptor that they inherit."""

    tier: int
    available: Available
    ruleset: int | None
    filter: seccomp.Filter | None
    identity: privileges.Identity | None
    hidden: tuple[str, ...]
    listed: tuple[tuple[str, int], ...]
    root_stays: str | None
    namespaces_refused: str | None


@dataclass(frozen=True, kw_only=True)
class InForce:
    """What holds a child: `tier` is the one whose every layer holds; a note says each thing that is less than asked."""

    tier: int
    landlock_abi: int
    seccomp: bool
    namespaces: bool
    uid_dropped: bool
    capabilities_dropped: bool
    notes: tuple[str, ...]


def probe() -> Available:
    """Ask the system what it has. Cheap, starts nothing; whether namespaces can be had is known only to `prepare`."""
    if sys.platform != "linux":
        note = "Only Linux has the layers above tier 0: here a child process, a deadline and limits are all there is."
        return Available(
            system=platform.system(), landlock_abi=0, seccomp=False, namespaces=False, highest_tier=0, notes=(note,)
        )
    abi, filters, refusal = landlock.abi(), seccomp.available(), namespaces.switched_off()
    highest = PRACTICE if not (abi and filters) else GUARDED if refusal else JAIL
    notes = [*_missing(abi, filters), *_refused(refusal)]
    return Available(
        system="Linux", landlock_abi=abi, seccomp=filters, namespaces=not refusal, highest_tier=highest,
        notes=tuple(notes),
    )  # fmt: skip


def _refused(refusal: str | None) -> Iterator[str]:
    if refusal:
        yield f"No namespaces: {refusal}. The attempt is in the same network and among the same processes as the user."


def _missing(abi: int, filters: bool) -> Iterator[str]:
    if not abi:
        yield "No Landlock (Linux 5.13 and later, and a container that allows it): the attempt reads the user's files."
    elif not filters and abi < landlock.FIRST_ABI_THAT_SEES_TRUNCATION:
        yield "This Landlock does not see truncation, and there is no seccomp to refuse it: files can be emptied."
    if not filters:
        if platform.machine() not in syscall_table.NUMBERS:
            yield f"No seccomp: the system calls of {platform.machine()} are not known to this package."
        else:
            yield "No seccomp (or a container that forbids it): the attempt starts processes and talks to the network."


def prepare(*, tier: int, denied: Iterable[str] = (), also_readable: Iterable[str] = ()) -> Prepared:
    """Build, once and after torch's import, what children up to this tier inherit.

    `denied` paths are never readable, nor is this package and what names its place; `also_readable` paths are, beside
    Python, its libraries and a few of the system's files. For tier 2 a child is forked to try the namespaces.
    Raises IsolationError when a layer that the system has cannot be built.
    """
    available = probe()
    if sys.platform != "linux" or tier == PRACTICE:
        return Prepared(
            tier=tier, available=available, ruleset=None, filter=None, identity=None, hidden=(), listed=(),
            root_stays=None, namespaces_refused=None,
        )  # fmt: skip
    nowhere = [*readable.ours(), *denied]
    python = readable.of_python()
    allowed, split = landlock.without([*python, *readable.of_system(), *also_readable], nowhere)
    readable.remember_import_folders()
    with _layer("user ids"):
        identity = privileges.choose_identity(python)
    refusal = namespaces.switched_off()
    if tier >= JAIL and refusal is None:
        refusal = _try_namespaces(identity if isinstance(identity, privileges.Identity) else None)
        if refusal:
            available = replace(available, namespaces=False, highest_tier=min(available.highest_tier, GUARDED))
    ruleset = program = None
    if available.landlock_abi:
        with _layer("Landlock"):
            ruleset = landlock.create_ruleset(available.landlock_abi, allowed)
    if available.seccomp:
        blind = available.landlock_abi < landlock.FIRST_ABI_THAT_SEES_TRUNCATION
        program = seccomp.assemble(platform.machine(), refuse_writing=blind)
    # What Landlock denies needs no covering, and a covered /proc would take /proc/cpuinfo away with it.
    hidden = () if ruleset is not None else (*filter(os.path.isdir, map(os.path.realpath, nowhere)), "/proc")
    return Prepared(
        tier=tier, available=available, ruleset=ruleset, filter=program,
        identity=identity if isinstance(identity, privileges.Identity) else None,
        hidden=hidden, listed=readable.ages(split),
        root_stays=identity if isinstance(identity, str) else None, namespaces_refused=refusal,
    )  # fmt: skip


def _try_namespaces(identity: privileges.Identity | None) -> str | None:
    """Enter new namespaces in a child that does nothing else; what the system said when it refused."""
    child = os.fork()
    if child == 0:
        try:
            if identity is not None:
                privileges.take(identity)
            namespaces.enter()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        finally:  # whatever else went wrong: two engines must not go on from here
            os._exit(255)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == 0 else f"the system refuses them ({os.strerror(code) if 0 < code < 255 else code})"


def is_current(prepared: Prepared) -> bool:
    """Whether the import folders are as they were listed; when a package came since, prepare again or start anew."""
    return all(readable.ages((folder,)) == ((folder, age),) for folder, age in prepared.listed)


def release(prepared: Prepared) -> None:
    """Close what the engine holds open for its children."""
    if prepared.ruleset is not None:
        os.close(prepared.ruleset)


def confine(plan: Plan, prepared: Prepared) -> InForce:
    """Put every layer of the plan's tier in force for this process: freshly forked, with one thread, and nothing of
    the attempt in it yet. For good.

    In tier 2 it returns in a further child, process 1 of its namespaces; the caller's process waits and ends alike.
    Raises IsolationError when a layer that the tier requires and that the system has fails.
    """
    if plan.tier > prepared.tier:
        raise IsolationError(f"tier {plan.tier} was asked for, and only tier {prepared.tier} was prepared")
    if sys.platform != "linux":
        return _confine_elsewhere(plan, prepared)
    available, guarded = prepared.available, plan.tier >= GUARDED
    jailed = plan.tier >= JAIL and available.namespaces
    identity = prepared.identity if guarded else None
    ruleset = prepared.ruleset if guarded else None
    program = prepared.filter if guarded else None
    with _layer("the session"):
        process.own_session()
    with _layer("the folder"):  # before the user id goes: it may be the engine's alone
        surroundings.enter(plan.folder)
    with _layer("user ids"):
        if identity is not None:
            privileges.take(identity)
    with _layer("death with the parent"):  # after the user id, which makes the kernel forget it
        process.die_with(plan.parent_pid)
    with _layer("descriptors"):
        descriptors.close_all_but((*plan.keep_descriptors, *(() if ruleset is None else (ruleset,))))
    if jailed:
        with _layer("namespaces"):  # before the capabilities go: they give new ones
            namespaces.enter(prepared.hidden)
    with _layer("limits"):
        notes = limits.set_limits(
            cpu_seconds=plan.cpu_seconds, memory_bytes=plan.memory_bytes, file_bytes=plan.file_bytes,
            private_user=identity is not None,
        )  # fmt: skip
    with _layer("private memory"):
        process.keep_memory_private()
    if guarded:
        with _layer("capabilities"):
            privileges.drop_capabilities()
        with _layer("no new privileges"):
            process.gain_no_privileges()
    if ruleset is not None:
        with _layer("Landlock"):
            landlock.restrict_self(ruleset, available.landlock_abi)
    if program is not None:
        with _layer("seccomp"):  # last: it refuses what the layers before it are made of
            seccomp.load(program.for_process(os.getpid()))
    held = 0 if ruleset is None or program is None else JAIL if jailed else GUARDED
    return InForce(
        tier=min(plan.tier, held),
        landlock_abi=0 if ruleset is None else available.landlock_abi,
        seccomp=program is not None,
        namespaces=jailed,
        uid_dropped=identity is not None and identity.reads_as is None,
        capabilities_dropped=guarded,
        notes=(*(_less_than(plan, prepared) if guarded else ()), *notes),
    )


def _less_than(plan: Plan, prepared: Prepared) -> Iterator[str]:
    """A sentence for each thing that is less than the plan's tier promises."""
    yield from _missing(prepared.available.landlock_abi, prepared.filter is not None)
    if plan.tier >= JAIL:
        yield from _refused(prepared.namespaces_refused)
    if prepared.root_stays:
        yield prepared.root_stays
    if prepared.identity is not None and prepared.identity.note:
        yield prepared.identity.note


def _confine_elsewhere(plan: Plan, prepared: Prepared) -> InForce:
    """Tier 0 where there is no Linux: what POSIX has, and on Windows the folder and the environment alone."""
    with _layer("the folder"):
        surroundings.enter(plan.folder)
    if os.name == "posix":
        with _layer("the session"):
            process.own_session()
        with _layer("descriptors"):
            descriptors.close_all_but(plan.keep_descriptors)
    notes = limits.set_limits(
        cpu_seconds=plan.cpu_seconds, memory_bytes=plan.memory_bytes, file_bytes=plan.file_bytes, private_user=False
    )
    return InForce(
        tier=0, landlock_abi=0, seccomp=False, namespaces=False, uid_dropped=False, capabilities_dropped=False,
        notes=(*prepared.available.notes, *notes),
    )  # fmt: skip


@contextmanager
def _layer(name: str) -> Iterator[None]:
    """Turn any failure of a layer into an IsolationError that names it: a child must not go on with one missing."""
    try:
        yield
    except IsolationError:
        raise
    except Exception as error:
        raise IsolationError(f"{name}: {error}") from error


def guard_engine(parent_pid: int | None = None) -> None:
    """Make this process, the engine or a grader child, unreadable to its neighbours and the parent of its orphans.

    With a parent_pid it also dies with that parent. Does nothing but on Linux.
    """
    if sys.platform != "linux":
        return
    process.keep_memory_private()
    process.adopt_orphans()
    if parent_pid is not None:
        process.die_with(parent_pid)
