"""Whether this user, on this machine, wrote a text: by a mark that nobody can make without a key that stays here.

The owner of a file does not tell: what was downloaded, unpacked or checked out belongs to whoever did so.
"""

import hmac
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

_SIZE = 32  # bytes of the key, as many as the digest has


def mark(text: str) -> str:
    """Return the mark of this user for a text, empty where no key can be kept.

    The key is made when it is first needed, in `$XDG_STATE_HOME/truearm/key` or `~/.local/state/truearm/key`.
    """
    key = _key()
    return hmac.digest(key, text.encode(), "sha256").hex() if key else ""


def is_mine(text: str, marked: object) -> bool:
    """Return whether a mark for a text was made by this user on this machine."""
    own = mark(text)
    return (
        bool(own)
        and isinstance(marked, str)
        and hmac.compare_digest(own.encode(), marked.encode(errors="replace"))
    )


def _key() -> bytes:
    try:
        path = _place()
        if not path.exists():
            _make(path)
        with path.open("rb") as file:
            status, key = os.fstat(file.fileno()), file.read(_SIZE + 1)
    except (OSError, RuntimeError):  # no home, or nothing may be written there
        return b""
    if not hasattr(os, "geteuid"):  # Windows: whose a key is cannot be told
        return b""
    private = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return key if private and len(key) == _SIZE else b""


def _place() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "truearm" / "key"


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # for this user only
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SIZE))
        with suppress(FileExistsError):  # of two at once the first one's stays, and is whole
            path.hardlink_to(made)
    finally:
        made.unlink()
