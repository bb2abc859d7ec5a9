"""Readings: how attention that was not written from a stub is understood, so that it can be graded by a kata's contract.

`reading` is the value and its flags, `contract` what a kata says about code by other names, `structure` what a source's syntax
tells, `vocabulary` what names mean, `candidates` the readings that are possible, `adapter` the Python that makes the code an
attempt, `search` the choice by behaviour, and `limits` what of the contract the code can be asked.

The source is parsed and never run here: it runs in the attempt process alone.
"""
