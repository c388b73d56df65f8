"""Processes that are killed: `python killing.py DATABASE POINTS` prints the tickets acknowledged to them.

Each is a copy of this one, which has loaded everything, so that one begins and ends within milliseconds.
"""

import os
import random
import signal
import sys
import time

from truearm.service.models import PullReading
from truearm.service.studies import Studies
from truearm.store import Database


def value_of(ticket):
    return ticket * 2654435761 % 1000 / 1000


def measure(database, pipe):
    """Ask and tell until somebody ends this process."""
    host = Studies(Database(database))
    while pulls := host.ask("killed", f"worker-{os.getpid()}", 3).pulls:
        host.tell("killed", [PullReading(pull.ticket, value_of(pull.ticket)) for pull in pulls])
        os.write(pipe, b"".join(b"%d\n" % pull.ticket for pull in pulls))


def killed(database, pause):
    """Return what a process was acknowledged that is killed a while after its first reading."""
    listening, telling = os.pipe()
    process = os.fork()
    if not process:
        try:
            measure(database, telling)
        finally:
            os._exit(1)
    os.close(telling)
    with os.fdopen(listening, "rb") as heard:
        tickets = [heard.readline()]
        time.sleep(pause)
        os.kill(process, signal.SIGKILL)
        tickets += heard.readlines()
    os.waitpid(process, 0)
    return tickets


if __name__ == "__main__":
    moments = random.Random(3)
    for _ in range(int(sys.argv[2])):
        sys.stdout.writelines(ticket.decode() for ticket in killed(sys.argv[1], moments.random() * 0.03))
