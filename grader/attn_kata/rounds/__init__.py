"""Rounds of practice as values, without a terminal: choose one, write or show it, judge it.

`spoiled` makes code with known mistakes, for `hunt` (mend them in a file) and `review` (mark them, before any run).
`napkin` judges numbers. `record` keeps the hunts that were written and how every round went.
"""
