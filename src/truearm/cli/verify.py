"""`truearm verify`: whether a result follows from its readings."""

import json as json_format
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from truearm import store
from truearm.claims.certificate import Tapes
from truearm.claims.plain import from_plain
from truearm.cli.answer import FAILED, GOOD, UNDECIDED, Answer, Screen, show
from truearm.cli.options import FORM, declare
from truearm.data.cells import Form
from truearm.data.columns import Columns, Dataset
from truearm.data.importers import distinct_keys
from truearm.data.tables import load
from truearm.errors import InvalidArgument, VerificationError
from truearm.evidence.units import Reduction
from truearm.ledger import read_ledger
from truearm.problem import refuse
from truearm.report.export import json_text
from truearm.report.numbers import name_of, plural
from truearm.study import Study
from truearm.verification import Verified, certificate_of, verify

_KEEP_HEAD = (
    "Only a rewrite of the whole file could hide a change; to rule that out, keep its head and pass it next time: "
    "--head"
)
_SQLITE = b"SQLite format 3\0"
_OPTIONS = f"""
+ arm value unit order round {" ".join(FORM)}
--head DIGEST  The head that a log or ledger had before: its chain must still contain it.
+ json
"""


@click.command("verify")
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("readings", type=click.Path(allow_dash=True), required=False)
@declare(_OPTIONS)
@click.pass_context
def verify_command(
    ctx: click.Context, /, file: str, readings: str | None, *, head: str | None, **roles: str | None
) -> None:
    """Recompute a result from its readings, and compare it with everything that FILE says.

    \b
    truearm verify result.json                        what --json printed
    truearm verify result.json run.db                 ... by the log of the study
    truearm verify found.json data.csv --arm variant --value ms
    truearm verify run.db                             was a log changed?
    truearm verify loop.db                            ... or a ledger?

    Exit codes: 0 everything follows from the readings; 1 something does not, and the message says what; 2 usage;
    3 everything that can be recomputed follows, and the rest is taken on trust.
    """  # noqa: D301 - click wants the control character
    name, found, failed = name_of(file), Verified(), None
    more: dict[str, object] = {}
    try:
        raw = Path(file).read_bytes()  # once: what comes through a pipe cannot be read again
        if raw.startswith(_SQLITE):
            turned = f"truearm verify {readings} {file}"
            refuse(readings is not None, f"a log is verified alone; to verify a result with it: {turned}")
            if int.from_bytes(raw[68:72], "big") == store.LEDGER:  # its application id
                book = read_ledger(file, head)
                what = f"{plural(len(book.gates), 'gate')}. Numbers, levels and verdicts follow from each other"
                more = {"gates": len(book.gates), "head": book.head}
            else:
                log = store.verify(file, head)
                what = plural(log.events, "event")
                more = {"events": log.events, "head": log.head}
            message = f"Verified: {name} holds {what}, and nothing was changed. {_KEEP_HEAD} {more['head']}"
        else:
            if head is not None:
                no_log = readings is None or not _is_log(readings)
                refuse(no_log, "--head is that of a log; give the log it belongs to, or remove --head")
                store.verify(str(readings), head)
            data = _parse(file, raw)
            found = verify(data, None if readings is None else _readings(readings, roles, data))
            message = f"Verified: {name} follows from its readings."
            message = message if found else f"Verified with trust in: {'; '.join(found.trust)}."
            if found.beside:
                message += f"\nNot a part of the certificate: {', '.join(map(name_of, found.beside))}."
    except VerificationError as error:
        failed = str(error)
        message = f"Not verified: {failed}."
    code = FAILED if failed is not None else GOOD if found else UNDECIDED
    facts = {"verified": code == GOOD, "trust": list(found.trust), "beside": list(found.beside), "failed": failed}
    forms = {"json": lambda: json_text({**facts, **more})}

    def text(screen: Screen) -> str:
        return "\n".join(map(screen.wrap, message.split("\n"))) if screen.terminal else message

    ctx.exit(show(ctx, Answer(text, code, forms)))


def _is_log(path: str) -> bool:
    with suppress(OSError), Path(path).open("rb") as file:  # or a folder, a pattern, or standard input
        return file.read(len(_SQLITE)) == _SQLITE
    return False


def _parse(path: str, raw: bytes) -> Any:  # noqa: ANN401 - anything; `verify` checks it
    try:
        return json_format.loads(raw, object_pairs_hook=distinct_keys)
    except InvalidArgument:
        raise
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json_format.JSONDecodeError) else ""
        remedy = "give what --json printed, or a log, and after it a table of readings if there is one"
        msg = f"{path} is not JSON{where}; {remedy}"
        raise InvalidArgument(msg) from None


def _readings(path: str, roles: Mapping[str, Any], result: Any) -> Tapes | Dataset | Study:  # noqa: ANN401
    """Return the readings of a log, of a document that carries them, of a plain JSON object, or of a table."""
    if _is_log(path):
        with store.Store(path) as log:
            return Study.replay(log.definition, log.events())
    if Path(path).suffix == ".json" and not any(roles.values()):
        data = _parse(path, Path(path).read_bytes())
        readings = data.get("readings", data) if isinstance(data, dict) else None
        if isinstance(readings, dict) and all(isinstance(tape, list) for tape in readings.values()):
            tapes: Tapes = from_plain(Mapping[str, tuple[float | None, ...]], readings, "readings")
            return tapes
    how = Reduction()  # of the readings of one unit to one
    if not (isinstance(result, Mapping) and "suite" in result):  # `verify` says what a suite needs instead
        problem = certificate_of(result).problem
        how = Reduction.of(at_least=problem.at_least, at_most=problem.at_most)
    form = Form.of(**{name: roles[name] for name in FORM})
    return load(path, Columns(*(roles[name] for name in Columns._fields)), how, form)
