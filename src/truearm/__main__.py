"""`python -m truearm` is `truearm`."""

from truearm.cli import main

if __name__ == "__main__":
    main()
