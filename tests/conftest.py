"""What all tests share: no verdict of a test depends on how busy the machine is."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
