"""What all tests share: no verdict of a test depends on how busy the machine is, on chance, or on who began it."""

import signal

from hypothesis import settings

settings.register_profile("quick", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=300)
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background: what tests interrupt would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
