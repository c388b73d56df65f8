"""`truearm` and `python -m truearm`: an interrupt while they are being loaded ends them without a word."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from truearm.cli import main as verbs

        verbs()
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell says of a program that SIGINT ended


if __name__ == "__main__":
    main()
