# A segmentation fault at import.
# outcome: ungraded
# says: it crashed (SIGSEGV)
import ctypes

ctypes.string_at(0)
