"""Readings: how attention that was not written from a stub is understood, so that it can be graded by a kata's contract.

`reading` is the value and its flags, `contract` what a kata says about code by other names, `structure` what a source's syntax
tells, `vocabulary` what names mean. `building`, `layers`, `calls` and
`masks` list the readings that are possible. `reader` hands the source to the search for an attention, a rotation or a mask;
all choose by behaviour, with the same `search`. `adapter` is the Python that makes the code an attempt, and `limits` what of
the contract it can be asked.

The source is parsed and never run here: it runs in the attempt process alone.
"""
