"""Real servers for tests: processes that listen on a free port of this machine, and are ended by their ids."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx

from truearm.service.studies import Studies
from truearm.store import Database

SOURCE = str(Path(__file__).parents[2] / "src")


@contextmanager
def hosting(url, **options):
    """Studies of a database, without HTTP."""
    database = Database(str(url), **options)
    try:
        yield Studies(database)
    finally:
        database.close()


class Server:
    """A process of `truearm serve`."""

    def __init__(self, database, *options, port=0, environment=None, **popen):
        words = [sys.executable, "-m", "truearm", "serve", "--database", str(database), "--port", str(port)]
        environment = {**os.environ, "PYTHONPATH": SOURCE, **(environment or {})}
        self.process = subprocess.Popen(
            [*words, *options], stderr=subprocess.PIPE, text=True, env=environment, **popen
        )
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if '"listening"' in line:
                break
        else:
            self.process.wait()
            self.process.stderr.close()
            raise RuntimeError("".join(self.lines))
        self.url = json.loads(self.lines[-1])["url"]
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self._reader.start()

    @property
    def log(self):
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(30)
        self._reader.join()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        else:
            self._reader.join()
            self.process.stderr.close()

    def get(self, path):
        with self.client() as client:
            return client.get(path).json()

    def client(self, token=None, **more):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **more)
