"""Take the screenshots of the service for docs/: a real server, seeded readings, Chromium.

python docs/screens.py [FOLDER]     docs/images by default; needs Chromium, or its path in CHROMIUM
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truearm import Client

IMAGES = Path(__file__).parent / "images"
TASTES = {"Lemon": 6.2, "Ginger": 6.8, "Mint": 6.2}
READINGS = 120
WALL, PHONE = {"width": 1100, "height": 1300}, {"width": 390, "height": 640}


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server with a temporary database, and yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "truearm", "serve", "--database", f"{folder}/s.db", "--port", "0"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                yield next(json.loads(line)["url"] for line in process.stderr if '"listening"' in line)
            finally:
                process.terminate()


def taste(url: str) -> None:
    """Record readings of the study in docs/service.md, the same every time; the study stays open."""
    draw = random.Random(4)
    title = "Which lemonade tastes best?"
    with Client(url, "taste", list(TASTES), worker="ann", title=title, seed=4) as study:
        for _ in range(READINGS):
            (pull,) = study.ask(1)
            study.tell(pull, round(draw.gauss(TASTES[pull.arm], 1), 1))


def take(folder: Path) -> None:
    """Write screenshots of the live page and a phone's card, and the text of both, which a test compares."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with running_server() as url, sync_playwright() as driver:
        taste(url)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        phone = browser.new_page(viewport=PHONE)
        phone.goto(f"{url}/s/taste/next")
        phone.fill("#worker", "bob")
        phone.click("text=Start")
        phone.wait_for_selector("#card:visible")
        words = [phone.inner_text("main")]
        phone.screenshot(path=folder / "service-next.png")
        wall = browser.new_page(viewport=WALL)
        wall.goto(f"{url}/s/taste")
        wall.wait_for_selector("text=being measured by bob")
        words.append(wall.inner_text("main"))
        wall.screenshot(path=folder / "service-study.png")
        browser.close()
    (folder / "service.txt").write_text("\n\n".join(words) + "\n", encoding="utf-8")


if __name__ == "__main__":
    take(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
