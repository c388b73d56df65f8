"""Print and write a page of results that has sections."""

import time
from collections.abc import Iterable
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def write_sections(name: str, title: str, sections: dict[str, Iterable[str]]) -> None:
    """Print each line when it is measured, and write all of them to the page NAME in benchmarks/results."""
    start, text = time.perf_counter(), [f"# {title}", ""]
    for heading, lines in sections.items():
        text += [f"## {heading}", ""]
        for line in lines:
            print(line, flush=True)
            text.append(line)
        text.append("")
    text.append(f"{time.perf_counter() - start:.0f} s on one core.")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text("\n".join(text) + "\n", encoding="utf-8")
