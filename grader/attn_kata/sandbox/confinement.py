"""Applies the layers in order: finds what this system has, prepares once in the engine, and confines each child."""

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
    """The layers that this system reports. A note says which one is missing, and what the attempt can do without it."""

    system: str
    landlock_abi: int
    seccomp: bool
    namespaces: bool
    highest_tier: int
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to confine one child. `folder` must exist. `memory_bytes` are added to the memory that is mapped already."""

    tier: int
    keep_descriptors: tuple[int, ...]
    folder: str
    cpu_seconds: int
    memory_bytes: int
    file_bytes: int
    parent_pid: int


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Built once in the engine, for all children. The ruleset is an open descriptor that the children inherit."""

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
    """The isolation of a child. All layers of `tier` are in force. Each note names something weaker than the plan asked for."""

    tier: int
    landlock_abi: int
    seccomp: bool
    namespaces: bool
    uid_dropped: bool
    capabilities_dropped: bool
    notes: tuple[str, ...]


def probe() -> Available:
    """Ask the system which layers it has. Cheap, and starts no process. Only `prepare` finds out whether namespaces work."""
    if sys.platform != "linux":
        note = "Only Linux has the layers above tier 0: here there are only a child process, a deadline and limits."
        return Available(
            system=platform.system(), landlock_abi=0, seccomp=False, namespaces=False, highest_tier=0, notes=(note,)
        )
    abi, filters, refusal = landlock.abi(), seccomp.available(), namespaces.switched_off()
    highest = PRACTICE if not (abi and filters) else GUARDED if refusal else JAIL
    notes = [*_missing_layers(abi, filters), *_refused_namespaces(refusal)]
    return Available(
        system="Linux",
        landlock_abi=abi,
        seccomp=filters,
        namespaces=not refusal,
        highest_tier=highest,
        notes=tuple(notes),
    )


def _refused_namespaces(refusal: str | None) -> Iterator[str]:
    if refusal:
        yield f"No namespaces: {refusal}. The attempt is in the same network and among the same processes as the user."


def _missing_layers(abi: int, filters: bool) -> Iterator[str]:
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
    """Build what children up to this tier inherit: once, after torch is imported.

    `denied` paths are never readable. Neither is this package, nor files that show where it is. Readable are Python, its
    libraries, a few system files, and the `also_readable` paths. For tier 2, a child is forked to test the namespaces.
    Raises IsolationError if the system has a layer but it cannot be built.
    """
    available = probe()
    if sys.platform != "linux" or tier == PRACTICE:
        return Prepared(
            tier=tier,
            available=available,
            ruleset=None,
            filter=None,
            identity=None,
            hidden=(),
            listed=(),
            root_stays=None,
            namespaces_refused=None,
        )
    unreadable = [*readable.own_files(), *denied]
    python = readable.of_python()
    allowed, split = landlock.without([*python, *readable.of_system(), *also_readable], unreadable)
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
    # Landlock denies these folders already. Covering /proc would also hide /proc/cpuinfo, so do it only without Landlock.
    hidden = () if ruleset is not None else (*filter(os.path.isdir, map(os.path.realpath, unreadable)), "/proc")
    return Prepared(
        tier=tier,
        available=available,
        ruleset=ruleset,
        filter=program,
        identity=identity if isinstance(identity, privileges.Identity) else None,
        hidden=hidden,
        listed=readable.change_times(split),
        root_stays=identity if isinstance(identity, str) else None,
        namespaces_refused=refusal,
    )


def _try_namespaces(identity: privileges.Identity | None) -> str | None:
    """Enter new namespaces in a child that does nothing else. Returns the reason if the system refuses, else None."""
    child = os.fork()
    if child == 0:
        try:
            if identity is not None:
                privileges.take(identity)
            namespaces.enter()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        finally:  # exit whatever happens: two engines must not continue from here
            os._exit(255)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == 0 else f"the system refuses them ({os.strerror(code) if 0 < code < 255 else code})"


def is_current(prepared: Prepared) -> bool:
    """Whether the import folders are unchanged. If a package was installed since, prepare again or restart the engine."""
    return all(readable.change_times((folder,)) == ((folder, age),) for folder, age in prepared.listed)


def release(prepared: Prepared) -> None:
    """Close the ruleset that the engine holds open for its children."""
    if prepared.ruleset is not None:
        os.close(prepared.ruleset)


def confine(plan: Plan, prepared: Prepared) -> InForce:
    """Put every layer of the plan's tier in force for this process, for good.

    The process must be freshly forked, with one thread, and must not have run the attempt. In tier 2 the call returns in a
    further child, process 1 of its namespaces. The caller's process waits for it and exits in the same way. Raises
    IsolationError if a layer fails that the tier requires and the system has.
    """
    if plan.tier > prepared.tier:
        raise IsolationError(f"tier {plan.tier} was asked for, and only tier {prepared.tier} was prepared")
    if sys.platform != "linux":
        return _confine_without_linux(plan, prepared)
    available, guarded = prepared.available, plan.tier >= GUARDED
    jailed = plan.tier >= JAIL and available.namespaces
    identity = prepared.identity if guarded else None
    ruleset = prepared.ruleset if guarded else None
    program = prepared.filter if guarded else None
    with _layer("the session"):
        process.own_session()
    with _layer("the folder"):  # before the user id changes: only the engine's user may be able to enter it
        surroundings.enter(plan.folder)
    with _layer("user ids"):
        if identity is not None:
            privileges.take(identity)
    with _layer("death with the parent"):  # after the user id: changing it makes the kernel forget this setting
        process.die_with(plan.parent_pid)
    with _layer("descriptors"):
        descriptors.close_all_but((*plan.keep_descriptors, *(() if ruleset is None else (ruleset,))))
    if jailed:
        with _layer("namespaces"):  # before the capabilities are dropped: new namespaces give new ones
            namespaces.enter(prepared.hidden)
    with _layer("limits"):
        notes = limits.set_limits(
            cpu_seconds=plan.cpu_seconds,
            memory_bytes=plan.memory_bytes,
            file_bytes=plan.file_bytes,
            private_user=identity is not None,
        )
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
        with _layer("seccomp"):  # last: it refuses the system calls that the other layers need
            seccomp.load(program.for_process(os.getpid()))
    held = 0 if ruleset is None or program is None else JAIL if jailed else GUARDED
    return InForce(
        tier=min(plan.tier, held),
        landlock_abi=0 if ruleset is None else available.landlock_abi,
        seccomp=program is not None,
        namespaces=jailed,
        uid_dropped=identity is not None and identity.reads_as is None,
        capabilities_dropped=guarded,
        notes=(*(_weaker_than(plan, prepared) if guarded else ()), *notes),
    )


def _weaker_than(plan: Plan, prepared: Prepared) -> Iterator[str]:
    """A sentence for each thing that is weaker than the plan's tier promises."""
    yield from _missing_layers(prepared.available.landlock_abi, prepared.filter is not None)
    if plan.tier >= JAIL:
        yield from _refused_namespaces(prepared.namespaces_refused)
    if prepared.root_stays:
        yield prepared.root_stays
    if prepared.identity is not None and prepared.identity.note:
        yield prepared.identity.note


def _confine_without_linux(plan: Plan, prepared: Prepared) -> InForce:
    """Tier 0 on other systems than Linux: what POSIX offers; on Windows only the folder and the environment."""
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
        tier=0,
        landlock_abi=0,
        seccomp=False,
        namespaces=False,
        uid_dropped=False,
        capabilities_dropped=False,
        notes=(*prepared.available.notes, *notes),
    )


@contextmanager
def _layer(name: str) -> Iterator[None]:
    """Turn any failure of a layer into an IsolationError with its name: a child must not continue without the layer."""
    try:
        yield
    except IsolationError:
        raise
    except Exception as error:
        raise IsolationError(f"{name}: {error}") from error


def guard_engine(parent_pid: int | None = None) -> None:
    """Keep the memory of this process (engine or grader) private, and make it the parent of orphaned descendants.

    With a parent_pid, it also dies with that parent. Only on Linux; elsewhere it does nothing.
    """
    if sys.platform != "linux":
        return
    process.keep_memory_private()
    process.adopt_orphans()
    if parent_pid is not None:
        process.die_with(parent_pid)
