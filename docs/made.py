"""Generate files from code: pictures of a race, the man page, the HTTP reference, the JSON Schema.

`make made` draws the saved race; `python docs/made.py --measure` also runs it. Tests fail if a generated file
is out of date.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, TypedDict, get_type_hints

import click
import msgspec
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from truearm import __version__
from truearm.claims.certificate import Alarm, Certificate
from truearm.claims.certify import ratios
from truearm.claims.result import OF_PROBLEM, SCHEMA, Analysis, Items, Lead, Ratio, Result
from truearm.cli import main
from truearm.problem import Problem
from truearm.report import tables
from truearm.report.numbers import unit_for
from truearm.report.words import summarize, terms_for
from truearm.service.app import openapi_schema

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / "docs/images/race.json"
PICTURE = ROOT / "docs/images/race.svg"
READ = ROOT / "docs/images/race-read.svg"
MANUAL = ROOT / "docs/truearm.1"
HTTP = ROOT / "docs/http.md"
SCHEMA_FILE = ROOT / "docs/schema.json"
COMMANDS = ("zstd -qkf data", "gzip -kf data", "xz -kf data")
WIDTH = 72  # narrow, so that it can be read on a phone
MARKS = (  # parts of a race's answer that docs/reading.md explains, by their text
    (re.escape(COMMANDS[0]), "①"),
    (r"[\d.]+x faster", "②"),
    (r"at least [\d.]+x", "③"),
    ("95% sure", "④"),
    ("any load", "⑤"),
    ("random order", "⑥"),
    (r"up to [\d.]+%", "⑦"),
    (r"\d+ runs, [\d.]+ s", "⑧"),
    ("ratio per round", "⑨"),
)
AT_A_GLANCE = ("is fastest", r"[\d.]+x faster than gzip -kf data", r"[\d.]+x faster than xz -kf data", "95% sure")
_FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)  # pictures must not load fonts from the network


def measure() -> None:
    """Race three real commands on a generated file, and save the result."""
    sys.path.insert(0, str(ROOT / "examples"))
    from demo import text as prose

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "data").write_text(prose(200_000), encoding="utf-8")
        words = [sys.executable, "-m", "truearm", "race", "--export-json", str(MEASURED), *COMMANDS]
        subprocess.run(words, cwd=folder, check=True)


def answer_text(found: dict[str, Any], marks: Sequence[tuple[str, str]] = ()) -> str:
    """Return the output of `truearm race` for a saved result, with marks after the explained parts."""
    result = Result.from_dict(found)
    unit = unit_for(found["metric"], result.arms, target=result.problem.target)
    # the export has the time of each run; the whole race took a little longer
    elapsed = sum(time for command in found["results"] for time in command["times"])
    terms = terms_for(result, found["metric"], unit)._replace(elapsed=elapsed)
    words = summarize(result, terms=terms)
    table = tables.table(tables.arm_rows(result, terms, ratios(result)), WIDTH)
    for part, mark in marks:
        in_words, in_table = (re.sub(part, rf"\g<0>{mark}", whole, count=1) for whole in (words, table))
        if (words, table) == (in_words, in_table):
            msg = f"{part!r} is not in the output of a race: {words}"
            raise SystemExit(msg)
        words, table = (in_words, table) if words != in_words else (words, in_table)
    lines = Text(words).wrap(Console(width=WIDTH), WIDTH)
    return "\n".join(line.plain.rstrip() for line in lines) + f"\n\n{table}"


def picture(found: dict[str, Any], marks: Sequence[tuple[str, str]] = ()) -> str:
    """Return a terminal with a race and its answer, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    typed = "truearm race " + " ".join(f"'{command['command']}'" for command in found["commands"])
    console.print(Text.assemble(("$ ", "green"), (typed, "bold")))
    answer = Text(answer_text(found, marks))
    if not marks:  # at a glance: which command, how much, how sure
        answer.stylize("dim", 0, answer.plain.index("\n\n"))
        answer.highlight_regex("|".join(map(_spaced, AT_A_GLANCE)), "bold not dim")
    answer.stylize("bold green not dim", 0, len(found["best"]))
    answer.highlight_regex(rf"(?m)^{re.escape(found['best'])}.*best$", "bold green")
    answer.highlight_regex(r"(?m)^command .*$|^.*excluded$", "dim")
    answer.highlight_regex("[①-⑨]", "bold yellow not dim")
    console.print(answer)
    return console.export_svg(title="truearm", code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="race")


def _spaced(words: str) -> str:
    """Return a pattern that also finds words with a line break between them."""
    return words.replace(" ", r"\s+")


def http() -> str:
    """Return every route of the service with its types, from the schema that it publishes."""
    described = openapi_schema()
    parts = [
        "# HTTP reference",
        "All routes of `truearm serve`, from its `/openapi.json`. [The service](service.md) explains them.",
    ]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            parts += [
                f"## `{method.upper()} {path}`",
                f"{operation['summary']} {operation.get('description', '')}",
            ]
            parts += _traffic(operation)
    parts += ["## Types", "Fields without a default are required."]
    for name, kind in described["components"]["schemas"].items():
        parts += [f"### {name}", kind.get("description", "")]
        if fields := kind.get("properties"):
            rows = [_field(each, fields[each], each in kind.get("required", ())) for each in fields]
            parts.append("| field | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _traffic(operation: dict[str, Any]) -> Iterator[str]:
    for one in operation["parameters"]:
        if one["in"] != "path":
            yield f"`{one['name']}` ({one['in']}, {one['schema']['type']})\n: {one.get('description', 'optional')}"
    if "requestBody" in operation:
        yield f"Body: {_content(operation['requestBody'])}"
    for status, answer in operation["responses"].items():
        if status != "default":
            yield f"Response {status}: {_content(answer) if 'content' in answer else 'nothing'}"


def _content(part: dict[str, Any]) -> str:
    return ", ".join(
        _type(body["schema"]) if media == "application/json" else f"`{media}`"
        for media, body in part["content"].items()
    )


def _field(name: str, kind: dict[str, Any], required: bool) -> str:
    default = "" if required or "default" not in kind else f"`{json.dumps(kind['default'])}`"
    return f"| `{name}` | {_type(kind)} | {default} | {' '.join(kind.get('description', '').split())} |"


def _type(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind:
        return " or ".join(map(_type, kind["anyOf"]))
    if "enum" in kind:
        return " or ".join(f"`{json.dumps(value)}`" for value in kind["enum"])
    if kind.get("type") == "array":
        return f"list of {_type(kind['items'])}"
    limits = [
        f"{sign} {kind[key]:,}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in kind
    ]
    limits += [f"at most {kind['maxLength']} characters"] if "maxLength" in kind else []
    limits += [f"`{kind['pattern']}`"] if "pattern" in kind else []
    return ", ".join([str(kind.get("type", "anything")), *limits])


def manual() -> str:
    """Return the man page: every verb with its words and options, as `--help` has them."""
    group = click.Context(main, info_name="truearm", **main.context_settings)
    lines = [
        f'.TH TRUEARM 1 "" "truearm {__version__}" "User Commands"',
        ".SH NAME",
        "truearm \\- find the best of several arms, even when some readings are wrong",
        ".SH SYNOPSIS",
        ".B truearm",
        "VERB [OPTIONS] ...",
        ".SH DESCRIPTION",
        *_paragraphs(main.help or ""),
    ]
    for verb in main.list_commands(group):
        lines += _verb(verb, group)
    return "\n".join(lines) + "\n"


def _verb(verb: str, group: click.Context) -> Iterator[str]:
    command = main.get_command(group, verb)
    assert command is not None
    context = click.Context(command, info_name=verb, parent=group)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f".SH {verb.upper()}", f".B truearm {verb}", _plain(usage), "", *_paragraphs(command.help or ""))
    records = [parameter.get_help_record(context) for parameter in command.params]
    for record in (*filter(None, records), ("-h, --help", "Show this message and exit.")):
        yield from (".TP", f".B {_plain(record[0])}", _plain(" ".join(record[1].split())))


def _paragraphs(help_text: str) -> Iterator[str]:
    for part in cleandoc(help_text).split("\n\n"):
        if part.startswith("\b"):
            yield from (".PP", ".nf", *map(_plain, part.lstrip("\b\n").splitlines()), ".fi")
        else:
            yield from (".PP", _plain(" ".join(part.split())))


def _plain(words: str) -> str:
    """Return a line with everything escaped that roff would interpret."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def schema() -> str:
    """Return the JSON Schema of a result, made from the types of its fields."""
    kinds = _kinds()
    required = [key for key in kinds if key not in _OPTIONAL and key not in _of_analyses()]
    parts, definitions = msgspec.json.schema_components(kinds.values(), ref_template="#/$defs/{name}")
    number = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan", None]}]}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of truearm",
        "description": (
            "The output of `--json`, `Result.to_dict` and `Analysis.to_dict`. Ignore other keys. `schema` is "
            "raised when a key changes its meaning. In `certificate` and `readings` a number that JSON cannot "
            'represent is the string "inf", "-inf" or "nan"; elsewhere it is null.'
        ),
        "type": "object",
        "required": required,
        "properties": _with_numbers(dict(zip(kinds, parts, strict=True))),
        "$defs": {**_with_numbers(definitions), "number": number},
    }
    return json.dumps(document, indent=2) + "\n"


_OPTIONAL = ("items", "conditions", "readings", "ratios", "notes")


def _of_analyses() -> list[str]:
    common = {field.name for field in fields(Result)}
    return [field.name for field in fields(Analysis) if field.name not in common and field.compare]


def _kinds() -> dict[str, Any]:
    """Return the type of every key of a document."""
    hints, problem_hints = get_type_hints(Analysis), get_type_hints(Problem)
    alarm = TypedDict("AlarmMessage", {**get_type_hints(Alarm), "message": str})  # type: ignore[misc]
    lead = {**get_type_hints(Lead), "as": Literal["ratio", "difference"]}
    del lead["scale"]
    return {
        "schema": Literal[SCHEMA],
        **{
            field.name: hints[field.name]
            for field in fields(Analysis)
            if field.compare and field.name != "problem"
        },
        "pulls": TypedDict("Pulls", {"total": int, "arms": dict[str, int]}),
        "certified_tolerance": float,
        "better_by": list[TypedDict("Lead", lead)],  # type: ignore[misc]
        "target": Literal["quantile", "share", "wins", "mean", "estimate"],
        **{key: problem_hints[key] for key in OF_PROBLEM},
        "contamination": problem_hints["contamination"] | Literal["blind"],
        "items": TypedDict("Items", get_type_hints(Items)),
        "doubts": list[alarm],  # type: ignore[valid-type]
        "alarms": list[alarm],  # type: ignore[valid-type]
        "assumptions": list[str],
        "certificate": Certificate,
        "conditions": dict[str, Any] | None,
        "readings": dict[str, list[float | None]] | None,
        "notes": list[str],
        "ratios": list[Ratio],
    }


def _with_numbers(part: Any) -> Any:  # noqa: ANN401 - a part of a schema
    """Replace plain numbers by a reference to what a number may be here."""
    if part == {"type": "number"}:
        return {"$ref": "#/$defs/number"}
    if isinstance(part, dict):
        return {key: value if key == "default" else _with_numbers(value) for key, value in part.items()}
    return [_with_numbers(one) for one in part] if isinstance(part, list) else part


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure()
    saved = json.loads(MEASURED.read_text(encoding="utf-8"))
    PICTURE.write_text(picture(saved), encoding="utf-8")
    READ.write_text(picture(saved, MARKS), encoding="utf-8")
    MANUAL.write_text(manual(), encoding="utf-8")
    HTTP.write_text(http(), encoding="utf-8")
    SCHEMA_FILE.write_text(schema(), encoding="utf-8")
