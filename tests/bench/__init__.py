"""Benchmarks: whole processes, as ratios within one run. Not tests: nothing here fails for being slow."""
