"""A command line as text: whether it needs a shell, and which values replace its parameters.

Nothing here starts a process. Text that came from elsewhere (a revision's name, a command's output) is quoted for
a shell and escaped for a terminal; values that the user typed are used as typed.
"""

import itertools
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from truearm.errors import InvalidArgument
from truearm.problem import refuse

SHELL = "/bin/sh"
MAX_COMMANDS = 1000  # in one race: more are a typo, or would take days

# Reserved words, and builtins that are not programs too, as `echo`, `test` and `true` are.
_SHELL_WORDS = frozenset(
    shlex.split(
        "'!' . : '{' '}' alias bg break case cd command continue do done elif else esac eval exec exit export "
        "fc fg fi for function getopts hash if jobs local read readonly return set shift source then times "
        "trap type ulimit umask unalias unset until wait while"
    )
)
_MAX_EXPONENT = 300  # of a number in a scan
_QUOTED = r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\""""  # an escaped character, or text in quotes
_SYNTAX = re.compile(r"[|&;<>()$`*?\[\n]|(?<!\S)[#~]")


def needs_shell(line: str) -> bool:
    """Return True if a command line uses unquoted shell syntax: pipes, variables, globs, builtins."""

    def keep_expansions(match: re.Match[str]) -> str:  # a shell expands inside double quotes
        return "x" + re.sub(r"[^$`]", "", match[0]) if match[0][0] == '"' else "x"

    bare = re.sub(_QUOTED, keep_expansions, line, flags=re.DOTALL)
    if _SYNTAX.search(bare) or "\\\n" in line or re.match(r"\s*[A-Za-z_]\w*=", line):
        return True
    return _split(line)[0] in _SHELL_WORDS


def _split(line: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        msg = f"command {line!r} cannot be split into words ({error}); close the quote, or pass a shell"
        raise InvalidArgument(msg) from None
    refuse(not words, f"command must name a program, but got {line!r}")
    return words


def _choose_shell(line: str, shell: str | None) -> str | None:
    if shell == "auto":
        return SHELL if needs_shell(line) else None
    return {"default": SHELL, "none": None}.get(shell, shell) if shell else None


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and how to start it."""

    text: str
    name: str = ""  # the arm; the text by default
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Values bound into the text, kept for exports."""
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Variables set on top of the caller's environment."""
    cwd: str | None = None  # directory to start in; None is the caller's
    shell: str | None = "auto"
    """``"auto"`` decides by `needs_shell`, ``"none"`` uses no shell, ``"default"`` is ``/bin/sh``, others are the
    shell and its options. Afterwards it is the shell, or None."""
    input: str | None = None  # None: the same for all commands
    output: str | None = None

    def __post_init__(self) -> None:
        parts = (self.text, self.shell or "", self.cwd or "", *self.env, *self.env.values())
        msg = f"command, shell, folder and --env must be without NUL, but got {self.text!r}; remove it"
        refuse("\0" in "".join(parts), msg)
        refuse(not self.text.strip(), f"command must name a program, but got {self.text!r}")
        object.__setattr__(self, "name", self.name or self.text)
        object.__setattr__(self, "shell", _choose_shell(self.text, self.shell))
        _split(self.text if self.shell is None else self.shell)

    def with_env(self, variables: Mapping[str, str]) -> "Command":
        """Return the command with more variables in its environment."""
        return replace(self, env={**variables, **self.env})

    @property
    def argv(self) -> tuple[str, ...]:
        """The words for the operating system."""
        if self.shell is None:
            return _split(self.text)
        return (*_split(self.shell), "-c", self.text)


def share_shell(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Return the commands with one shell for all if one has it: a shell takes time too."""
    given = tuple(commands)
    shell = next((command.shell for command in given if command.shell is not None), None)
    return tuple(replace(command, shell=shell) for command in given)


def split_list(text: str) -> tuple[str, ...]:
    r"""Return the values of a comma-separated list; ``\,`` is a comma and ``\\`` a backslash in a value."""
    return tuple(re.sub(r"\\([,\\])|,", lambda found: found[1] or "\0", text).split("\0"))


def scan(low: str, high: str, step: str | None = None) -> tuple[str, ...]:
    """Return the numbers from low to high in steps of 1 or `step`, as decimal text without rounding."""
    first, last, width = (_decimal(text) for text in (low, high, step or "1"))
    is_open = step is None and any(end != end.to_integral_value() for end in (first, last))
    refuse(is_open, f"scan from {low} to {high} needs a step, because its ends are not whole numbers")
    got = f"but got {low:.40} to {high:.40} in steps of {width:.6g}; swap the ends, or choose a larger step"
    msg = f"scan must rise from MIN to MAX in fewer than {MAX_COMMANDS} positive steps, {got}"
    refuse(first > last or width <= 0 or (last - first) / width >= MAX_COMMANDS, msg)
    values = (format(first + i * width, "f") for i in range(int((last - first) / width) + 1))
    return tuple(text.rstrip("0").rstrip(".") if "." in text else text for text in values)


def _decimal(text: str) -> Decimal:
    number = Decimal("nan")
    with suppress(InvalidOperation):
        number = Decimal(text)
    is_huge = not number.is_finite() or (number and abs(number.adjusted()) > _MAX_EXPONENT)
    refuse(is_huge, f"a scan takes decimal numbers up to 1e300, but got {text!r:.60}")
    return number


def combinations(parameters: Mapping[str, Sequence[str]]) -> tuple[dict[str, str], ...]:
    """Return every combination of values, the first parameter changing fastest, as in hyperfine."""
    rows = itertools.product(*reversed(list(parameters.values())))
    return tuple(dict(zip(parameters, reversed(row), strict=True)) for row in rows)


def bind(
    template: str,
    parameters: Mapping[str, str],
    *,
    name: str = "",
    shell: str | None = "auto",
    typed: Collection[str] = (),
    **place: Any,  # noqa: ANN401
) -> Command:
    r"""Return the command with every ``{parameter}`` replaced by its value, quoted to stay one word.

    ``\{n}`` and ``${n}`` are left to the shell. Parameters that the name does not mention are appended to it.
    Values that the user typed (`typed` names their parameters) are not quoted, and may be whole commands.
    """
    label = name or template
    unused = [f"{key} = {value}" for key, value in parameters.items() if f"{{{key}}}" not in label]
    label = fill(label, parameters)
    return Command(
        text=_fill_quoted(template, parameters, typed),
        name=f"{label} ({', '.join(unused)})" if unused else label,
        parameters=dict(parameters),
        **place,
        # quoted values do not decide whether a shell is used
        shell=_choose_shell(_fill_quoted(template, {key: parameters[key] for key in typed}, typed), shell),
    )


def fill(text: str, parameters: Mapping[str, str]) -> str:
    """Return text that no shell reads, such as a path, with every ``{parameter}`` replaced by its value."""
    return _placeholders(parameters).sub(lambda match: parameters[match[1]], text)


def _placeholders(parameters: Mapping[str, str]) -> re.Pattern[str]:
    names = "|".join(re.escape(name) for name in parameters)
    return re.compile(rf"(?<!\$)\{{({names})\}}" if names else r"(?!)")


def _fill_quoted(template: str, parameters: Mapping[str, str], typed: Collection[str]) -> str:
    def replacement(match: re.Match[str], quote: str = "") -> str:
        value = shlex.quote(parameters[match[1]])
        if match[1] in typed or value == parameters[match[1]]:
            return parameters[match[1]]
        # inside these, quoting works differently, and a value could become syntax
        if syntax := re.search(r"\$[({'\"]|`|<<|(?:^|\s)#", template):
            what = f"value {value} of parameter {match[1]!r} cannot be quoted safely in {template!r}"
            raise InvalidArgument(f"{what}, which uses {syntax[0].strip()!r}; use a variable of the environment")
        return quote + value + quote  # close the open quote, add the quoted value, open the quote again

    def fill_part(part: re.Match[str]) -> str:
        quote = part[0][0] if part[0][0] in "'\"" else ""
        return part[0] if part[0][0] == "\\" else names.sub(partial(replacement, quote=quote), part[0])

    names = _placeholders(parameters)
    return re.sub(rf"{_QUOTED}|{names.pattern}", fill_part, template, flags=re.DOTALL)
