"""Readings: how attention that was not written from a stub is understood, so that it can be graded by a kata's contract.

`reading` is the value and its flags, `contract` what a kata says about code by other names. A source goes through the folders
in this order: `source` (what it says), `candidates` (the readings that are possible), `adapters` (code that makes it an
attempt) and `asking` (what it can be asked), `searching` (which candidate explains what it computes). `reader` is the way in.

The source is parsed and never run here: it runs in the attempt process alone.
"""
