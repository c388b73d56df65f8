"""Settings of all tests: no outcome depends on the load of the machine, on chance, or on the parent process."""

import signal

from hypothesis import settings

settings.register_profile("quick", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=300)
settings.load_profile("quick")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in the background; programs that tests interrupt inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
