# KeyboardInterrupt at import.
# outcome: ungraded
# says: KeyboardInterrupt
raise KeyboardInterrupt
