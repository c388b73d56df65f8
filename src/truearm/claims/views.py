"""A registry of views: functions of `report` by which results show themselves, so that imports point down."""

from collections.abc import Callable
from typing import Any

_views: dict[str, Callable[..., Any]] = {}


def register(**views: Callable[..., Any]) -> None:
    """Add functions by name; `import truearm` adds those of `report`."""
    _views.update(views)


def show(name: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the view has it
    """Return what the view of that name makes of these arguments."""
    return _views[name](*args, **options)
