import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_first_program_prints_what_the_page_says():
    program, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == printed.split()


def test_every_file_the_page_names_is_there():
    names = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`(benchmarks/\w+\.py)`", README)
    assert [name for name in names if not (Path(__file__).parent.parent / name).exists()] == []
