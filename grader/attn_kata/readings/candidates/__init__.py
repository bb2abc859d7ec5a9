"""The readings that are possible: how code may be built and called, which layers and masks it may have, what it may return."""
