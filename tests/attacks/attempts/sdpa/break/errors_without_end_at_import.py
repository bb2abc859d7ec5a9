# Prints on stderr without end, at import.
# outcome: ungraded
# says: no answer within 1 s
import os

while True:
    os.write(2, b"\x1b[2J\x07\n" * 1000)
