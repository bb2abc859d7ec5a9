# Memory eaten at import.
# outcome: ungraded
# says: it ran out of memory
eaten = bytearray(1 << 36)
