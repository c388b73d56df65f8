"""Race three compressors of the standard library on this machine, in half a minute at most.

Run: make demo
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

BUDGET = "25"  # seconds; the race usually needs a few

NO_ERROR = (0, 3, 4)  # decided; not decided, doubtful: on a busy machine these are answers too


def text(size: int) -> str:
    """Return words that compress about as well as prose."""
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(2000)]
    return " ".join(draw.choices(words, weights=[1 / (i + 1) for i in range(2000)], k=size))


def command(module: str) -> str:
    """Return a command line that compresses the file with one module of the standard library."""
    code = f"import {module}; {module}.compress(open('prose.txt', 'rb').read())"
    return f'{sys.executable} -I -S -c "{code}"'


def main() -> int:
    modules = ("zlib", "bz2", "lzma")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "prose.txt").write_text(text(40_000))
        print(
            "Which of zlib, bz2 and lzma compresses a file of prose fastest? Racing real processes.\n", flush=True
        )
        named = [word for module in modules for word in ("-n", module, command(module))]
        words = [sys.executable, "-m", "truearm.cli", "race", "--max-time", BUDGET, *named]
        code = subprocess.run(words, cwd=folder, check=False).returncode
    return 0 if code in NO_ERROR else code


if __name__ == "__main__":
    sys.exit(main())
