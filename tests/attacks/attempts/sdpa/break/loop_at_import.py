# An endless loop at import.
# outcome: ungraded
# says: no answer within 1 s
while True:
    pass
