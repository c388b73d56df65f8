"""What all tests share: no verdict of a test depends on how busy the machine is, on chance, or on who began it."""

import signal

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background: what tests interrupt would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
