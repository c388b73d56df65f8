"""`python -m truearm.cli`, where the script `truearm` is not on the path."""

from truearm.cli import main

main(prog_name="truearm")
