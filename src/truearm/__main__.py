"""Entry point of `truearm` and `python -m truearm`; an interrupt during import prints no traceback."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from truearm.cli import main as verbs

        verbs()
    except KeyboardInterrupt:
        sys.exit(130)  # the exit code of a program that SIGINT ended


if __name__ == "__main__":
    main()
