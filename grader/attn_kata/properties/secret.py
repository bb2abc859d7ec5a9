"""Numbers that nobody finds by trying seeds: torch's generators make all they draw of 32 bits of theirs."""

from __future__ import annotations

import hashlib

import torch

_WORDS = 624  # of a Mersenne Twister's state (Matsumoto and Nishimura, 1998), each 32 bits in the place of 64
_BEFORE_THEM = 24  # bytes: the seed, two counts and the next word's place


def fill(generator: torch.Generator, secret: bytes, purpose: str) -> None:
    """Have a CPU generator draw what depends on all of `secret`, and on what it is for."""
    generator.manual_seed(0)
    state = generator.get_state()
    drawn = hashlib.shake_256(secret + purpose.encode()).digest(4 * _WORDS)
    words = torch.frombuffer(bytearray(drawn), dtype=torch.int32).long() & 0xFFFFFFFF
    state[_BEFORE_THEM : _BEFORE_THEM + 8 * _WORDS].view(torch.int64).copy_(words)
    generator.set_state(state)
