"""Numbers that are made of a whole secret, and not of the 32 bits that torch seeds its generator with."""

from __future__ import annotations

import pytest
import torch
from attn_kata.properties.secret import fill

SECRET = bytes(range(32))


def drawn(secret: bytes, purpose: str = "values 0") -> torch.Tensor:
    generator = torch.Generator()
    fill(generator, secret, purpose)
    return torch.randn(10_000, generator=generator, dtype=torch.float64)


def test_they_are_the_same_for_the_same_and_such_as_torch_draws():
    numbers = drawn(SECRET)

    assert torch.equal(numbers, drawn(SECRET))
    assert abs(float(numbers.mean())) < 0.05
    assert abs(float(numbers.std()) - 1) < 0.05
    assert len(numbers.unique()) == len(numbers)


@pytest.mark.parametrize("place", [0, 15, 31])
def test_each_part_of_the_secret_and_the_purpose_matter(place):
    other = bytearray(SECRET)
    other[place] ^= 1

    assert not torch.equal(drawn(SECRET), drawn(bytes(other)))
    assert not torch.equal(drawn(SECRET), drawn(SECRET, "values 1"))


def test_the_whole_state_is_the_secrets():
    """Of a state that 32 bits were spread over, each word follows from the one before (Matsumoto and Nishimura, 1998)."""
    generator = torch.Generator()

    def follows() -> int:
        words = generator.get_state()[24 : 24 + 8 * 624].view(torch.int64).tolist()
        spread = ((1812433253 * (before ^ (before >> 30)) + place) & 0xFFFFFFFF for place, before in enumerate(words[:-1], 1))
        return sum(word == made for word, made in zip(words[1:], spread, strict=True))

    generator.manual_seed(5)
    assert follows() == 623
    fill(generator, SECRET, "values 0")
    assert follows() == 0
