"""What all tests share: no verdict of a test depends on how busy the machine is, nor on chance."""

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")
