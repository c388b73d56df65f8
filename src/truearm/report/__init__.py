"""Words, tables and pictures of results, registered as the views of results."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from truearm.claims import register


def _view(module: str, name: str) -> Callable[..., Any]:
    """Return a function of this package that imports its module when it is first called."""

    def show(*args: object) -> Any:  # noqa: ANN401 - as the function has it
        return getattr(import_module(f"truearm.report.{module}"), name)(*args)

    return show


register(
    text=_view("words", "summarize"),
    notes=_view("words", "notes"),
    assumptions=_view("assumptions", "assumptions"),
    alarm=_view("words", "alarm"),
    audit_text=_view("summaries", "audit"),
    gate_text=_view("summaries", "ledger_gate"),
    suite_text=_view("summaries", "suite_summary"),
    fragment=_view("pages", "fragment"),
    save_page=_view("pages", "save"),
    save_suite_page=_view("pages", "save_suite"),
    plot=_view("plot", "draw"),
    frame=_view("export", "frame"),
)
