"""What is read of the hidden tests without importing them is what they say when they are imported."""

from __future__ import annotations

import pytest

from attn_kata import catalog, claims
from attn_kata.authoring import mutants


@pytest.mark.parametrize("slug", catalog.slugs())
def test_every_property_is_read_as_its_hidden_test_marks_it(slug: str) -> None:
    marked = [test.property for test in mutants.hidden_tests(catalog.find(slug).folder)]
    read = {claim.name: claim for known in claims.load().values() for claim in known if claim.kata == slug}

    assert {(one.name, one.claim, one.tier, one.look_at, one.needs) for one in marked} == {
        (one.name, one.claim, one.tier, one.look_at, one.needs) for one in read.values()
    }
