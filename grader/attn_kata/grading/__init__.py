"""One grading: the connection to the attempt, the runner of the hidden tests, the reference cache, prefetch, the report."""
