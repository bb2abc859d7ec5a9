"""What an attempt does in a call, written down in its process and carried out again in another.

What its process says of itself is its own word, and so are the numbers of an operation that only it saw. So the attempt is
called with other numbers than are asked about, and gives no numbers: it gives a trace, the operations of torch's that lead
from the arguments to the result and to its gradients. A process in which nothing of the attempt ever ran carries them out with
the numbers that are asked about. There an operation that is forbidden is refused, a write into an input is seen where it
lands, and the numbers decide.

    tracing.py      in the attempt's process: notes the operations of a call
    running.py      in the other: carries out a trace, as far as `operations.py` and `backward.py` allow
    asking.py       in the grader: transports for the hidden tests, one for each of the two processes; `decoys.py` has the
                    numbers that the attempt is asked with
"""
