"""What every test starts from."""

import signal

# A run that was started in the background may have inherited an ignored SIGINT, and would hand it on to what it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
