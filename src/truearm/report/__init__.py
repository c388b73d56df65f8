"""Words, tables and pictures of results, registered as the views by which results show themselves.

Each view imports its module when it is first called, so that importing this package costs nothing.
"""

from typing import TYPE_CHECKING, Any

from truearm.claims.views import register

if TYPE_CHECKING:
    from truearm.claims.analysis import Analysis
    from truearm.claims.audit import Audit
    from truearm.claims.certificate import Alarm
    from truearm.claims.plain import Backend
    from truearm.claims.result import Named, Result
    from truearm.claims.suites import SuiteResult
    from truearm.problem import Problem


def _text(result: "Result") -> str:
    from truearm.report.words import summarize

    return summarize(result)


def _notes(result: "Analysis") -> tuple[str, ...]:
    from truearm.report.words import notes

    return notes(result)


def _assumptions(result: "Result") -> tuple[str, ...]:
    from truearm.report.words import assumptions

    return assumptions(result)


def _alarm(alarm: "Alarm", problem: "Problem") -> str:
    from truearm.report import words

    return words.alarm(alarm, problem)


def _fragment(result: "Result") -> str:
    from truearm.report.pages import fragment

    return fragment(result)


def _plot(result: "Result", ax: Any) -> Any:  # noqa: ANN401 - Axes of matplotlib
    from truearm.report.plot import draw

    return draw(result, ax)


def _save_page(result: "Result", path: "str | Named") -> None:
    from truearm.report.pages import save

    save(result, path)


def _frame(result: "Result", backend: "Backend") -> Any:  # noqa: ANN401 - of the library asked for
    from truearm.report.export import frame

    return frame(result, backend)


def _suite_text(result: "SuiteResult") -> str:
    from truearm.report.words import suite_summary

    return suite_summary(result)


def _save_suite_page(result: "SuiteResult", path: "str | Named") -> None:
    from truearm.report.pages import save_suite

    save_suite(result, path)


def _audit_text(found: "Audit") -> str:
    from truearm.report import words

    return words.audit(found)


register(
    text=_text,
    notes=_notes,
    assumptions=_assumptions,
    alarm=_alarm,
    fragment=_fragment,
    plot=_plot,
    save_page=_save_page,
    frame=_frame,
    suite_text=_suite_text,
    save_suite_page=_save_suite_page,
    audit_text=_audit_text,
)
