"""Find the best of several arms, even when some readings are wrong, and say how sure you are."""

from importlib import import_module

import lazy_loader

import truearm.report  # noqa: F401 - registers how results are displayed
from truearm.claims import register

_MODULES = {"errors", "policies", "problem"}  # reachable, but not part of `from truearm import *`

__version__ = "0.2.0"
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name not in _MODULES]

register(verify_certificate=lambda *case: import_module("truearm.verification").verify_certificate(*case))
