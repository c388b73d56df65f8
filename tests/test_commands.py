import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truearm.commands.command import Command, bind, scan, split_list
from truearm.errors import InvalidArgument

VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
TEMPLATES = ["echo {x}", "echo '{x}'", 'echo "{x}"', "echo a{x}b", """echo 'a{x}' "b{x}c" d"""]
WITHOUT_SHELL = r"""gzip -k -f file
grep 'a|b;c' "a > b"
find . -name \*.py
echo a#b a~b a=b {a,b} ! %d"""
WITH_SHELL = r"""echo "$HOME"
echo "\$HOME"
echo "`date`"
CC=gcc make
cd /tmp
! true
if true; then true; fi"""


def test_plain_lines_run_without_a_shell():
    assert {Command(line).shell for line in WITHOUT_SHELL.splitlines()} == {None}


@pytest.mark.parametrize(
    "line", [*WITH_SHELL.splitlines(), "echo a\\\nb", *(f"a {c}b" for c in "|&;<>()$`*?[\n#~")]
)
def test_shell_syntax_runs_through_a_shell(line):
    assert Command(line).argv == ("/bin/sh", "-c", line)


@given(st.text("ab \"'\\#~={}!$*|", max_size=12))
def test_without_a_shell_the_words_are_those_a_shell_would_make(line):
    try:
        command = Command("echo " + line)
    except InvalidArgument:
        return
    if command.shell is None:
        script = 'echo() { printf "%s\\0" "$@"; }; ' + command.text
        words = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True).stdout
        assert words.decode() == "".join(f"{word}\0" for word in command.argv[1:]) or command.argv == ("echo",)


@pytest.mark.parametrize("template", TEMPLATES)
@given(value=VALUES)
def test_a_value_stays_inside_its_word_without_a_shell(template, value):
    expected = tuple(word.replace("{x}", value) for word in shlex.split(template))
    assert bind(template, {"x": value}).argv == expected


@pytest.mark.parametrize("template", [t + ";" for t in TEMPLATES])
@given(value=VALUES)
def test_a_value_stays_inside_its_word_in_a_shell(template, value):
    line = bind(template, {"x": value}).text.replace("echo", "printf '%s\\0'", 1)
    found = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout.decode()
    words = shlex.split(template.rstrip(";"))[1:]
    assert found == "".join(word.replace("{x}", value) + "\0" for word in words)


def test_a_quoted_value_has_no_say_about_the_shell_and_a_typed_one_has():
    for value in ("a", "b|c", "$d"):
        assert bind("echo {x}", {"x": value}).shell is None
        assert (bind("echo {x}", {"x": value}, typed=["x"]).shell is None) == (value == "a")


@pytest.mark.parametrize(
    "template", ['echo "$(echo "{x}")"', "echo `echo {x}`", "cat <<E\n{x}\nE", "true # it's\necho {x}"]
)
def test_a_value_that_cannot_be_quoted_is_refused_and_a_plain_one_is_not(template):
    assert bind(template, {"x": "plain-1.5"}).text == template.replace("{x}", "plain-1.5")
    with pytest.raises(InvalidArgument, match="cannot be quoted"):
        bind(template, {"x": "a; rm b"})


@pytest.mark.parametrize(
    ("template", "values", "typed", "text"),
    [
        ("{cmd} {dir}", {"cmd": "ls -l '{dir}'", "dir": "my files"}, ["cmd"], "ls -l '{dir}' 'my files'"),
        (r"echo \{x} ${x} {y}", {"x": "1"}, [], r"echo \{x} ${x} {y}"),
        ("echo {a} {b}", {"a": "{b}", "b": "2"}, ["a"], "echo {b} 2"),
    ],
)
def test_placeholders_are_replaced_once_and_only_where_they_are_parameters(template, values, typed, text):
    assert bind(template, values, typed=typed).text == text


@pytest.mark.parametrize(
    ("text", "values"),
    [("", [""]), ("a,b", ["a", "b"]), (r"a\,b,c", ["a,b", "c"]), (r"\\,x", ["\\", "x"]), (r"\n,", [r"\n", ""])],
)
def test_lists_are_split_at_commas(text, values):
    assert split_list(text) == tuple(values)


@pytest.mark.parametrize(
    ("ends", "values"),
    [("1 3", "1 2 3"), ("0 0.3 0.1", "0 0.1 0.2 0.3"), ("-1 1", "-1 0 1"), ("100 100", "100"), ("1 4 2", "1 3")],
)
def test_scans_are_exact_decimals(ends, values):
    assert scan(*ends.split()) == tuple(values.split())
