"""The kept pictures of the service show what its pages say today."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CHROMIUM

DOCS = Path(__file__).parents[2] / "docs"


def size(path):
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:])


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install Debian's chromium, or name one in CHROMIUM")
def test_the_pictures_of_the_service_are_those_of_today(tmp_path):
    subprocess.run([sys.executable, str(DOCS / "screens.py"), str(tmp_path)], check=True, timeout=300)
    for name in ("service-study.png", "service-next.png"):
        assert size(tmp_path / name) == size(DOCS / "images" / name)
    said, kept = ((folder / "service.txt").read_text(encoding="utf-8") for folder in (tmp_path, DOCS / "images"))
    assert said == kept, "run: make made"
