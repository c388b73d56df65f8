"""The few elements a page is made of. Every word of a user goes through `text`."""

from collections.abc import Iterable, Sequence
from html import escape

from truearm.report.numbers import name_of

# on a phone a table is a block, in which a caption would be as narrow as its longest word
_CAPTION = "text-align:left;padding-top:.75rem;min-width:min(20rem,80vw)"


def text(words: str) -> str:
    """Return words as text of a page: markup escaped, what does not print replaced."""
    return escape(name_of(words))


def section(name: str, title: str, *parts: str) -> str:
    """Return a part of the page under its own heading; empty parts are left out."""
    body = "\n".join(filter(None, parts))
    return (
        f'<section aria-labelledby="{name}-title">\n<h2 id="{name}-title">{text(title)}</h2>\n{body}\n</section>'
    )


def note(words: str) -> str:
    """Return a paragraph in small print."""
    return f'<p class="note">{text(words)}</p>'


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table whose first column names the row; on a narrow page every cell shows its title."""
    head = "".join(f'<th scope="col">{text(title)}</th>' for title in titles)
    body = "".join(
        f'<tr><th scope="row">{text(first)}</th>{"".join(map(_cell, titles[1:], rest))}</tr>'
        for first, *rest in rows
    )
    above = f'<caption style="{_CAPTION}">{text(caption)}</caption>' if caption else ""
    return f'<div class="table"><table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(title: str, words: str) -> str:
    return f'<td data-title="{text(title)}"><span>{text(words)}</span></td>'
