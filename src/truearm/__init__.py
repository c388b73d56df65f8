"""Find the best of several arms from readings some of which are wrong, and say how sure you are."""
