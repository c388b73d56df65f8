"""Readings through the public entry point."""

import numpy as np

import truearm as ta


def analyze(source, arm=None, value=None, **options):
    """Return an analysis; one that no status can stop."""
    return ta.analyze(source, arm=arm, value=value, **options)


def tapes(source, arm=None, value=None, **options):
    """Return the readings of each arm as lists, None where one is missing."""
    found = ta.analyze(source, arm=arm, value=value, **options).readings
    return {name: [None if np.isnan(x) else float(x) for x in tape] for name, tape in found.items()}
