"""What all gradings of a class have in common: the kata, the seed, the time limit, and the versions of everything."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import asdict, dataclass
from importlib import metadata

from attn_kata import __version__
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError

LEAST_TIER = 1  # other people's code


@dataclass(frozen=True, kw_only=True)
class Version:
    """What a result depends on besides the source and the seed. `kata` is the SHA-256 of the kata's files."""

    attn_kata: str
    torch: str
    python: str
    kata: str

    def __str__(self) -> str:
        said = f"attn-kata {self.attn_kata}, torch {self.torch}, Python {self.python}"
        return f"{said}, kata files {self.kata[:12]}"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How every submission of a run is graded."""

    kata: str
    seed: int
    timeout: float
    version: Version
    flags: tuple[str, ...] = ()  # KEY=VALUE: how every submission is read; () is by the names of the contract

    def key(self, sha256: str) -> str:
        """What the result for the source with this SHA-256 depends on. An equal key has an equal result."""
        version = "\n".join(asdict(self.version).values())
        told = "\n".join([self.kata, str(self.seed), repr(self.timeout), version, sha256, *self.flags])
        return hashlib.sha256(told.encode()).hexdigest()


def version_here(kata: Kata) -> Version:
    """The versions on this machine. Raises UsageError where torch is not installed."""
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise UsageError(
            "torch is not installed here.", next_step='Install it: python -m pip install "torch>=2.4"'
        ) from None
    python = ".".join(platform.python_version_tuple()[:2])
    return Version(attn_kata=__version__, torch=torch, python=python, kata=_digest(kata))


def _digest(kata: Kata) -> str:
    """The SHA-256 of the files that a grading reads: the hidden tests, the mistakes and their words, the reference."""
    told = hashlib.sha256()
    for path in sorted([*kata.folder.glob("*.py"), *kata.folder.glob("*.toml"), kata.solution]):
        data = path.read_bytes()
        told.update(f"{path.name} {len(data)}\n".encode() + data)
    return told.hexdigest()


def too_weak(why: str) -> UsageError:
    """The error for a machine that cannot isolate other people's code."""
    return UsageError(
        f"Other people's code needs isolation of tier {LEAST_TIER}, and this machine has only tier 0. {why}".strip(),
        next_step="Grade on Linux with Landlock and seccomp",
    )
