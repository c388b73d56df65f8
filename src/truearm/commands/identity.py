"""Recognize what this user wrote on this machine, by a digest under a key that stays here.

The owner of a file does not show it: a file that was downloaded or unpacked belongs to this user as well.
"""

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_path

_KEY_BYTES = 32


def sign(text: str) -> str:
    """Return this user's signature of a text; "" where no key can be kept."""
    key = _key()
    return hmac.digest(key, text.encode(), "sha256").hex() if key else ""


def is_mine(text: str, signature: object) -> bool:
    """Return True if a text was signed by this user on this machine."""
    own = sign(text)
    given = signature.encode(errors="replace") if isinstance(signature, str) else b""
    return bool(own) and hmac.compare_digest(own.encode(), given)


def _key() -> bytes:
    """Return the key, made when it is first needed; nothing if others may read it."""
    try:
        path = user_state_path("truearm", ensure_exists=True) / "key"
        if not path.exists():
            _make_key(path)
        with path.open("rb") as file:
            status, key = os.fstat(file.fileno()), file.read(_KEY_BYTES + 1)
    except (OSError, RuntimeError):  # no home, or nothing may be written there
        return b""
    # Windows does not show whose a key is
    is_private = hasattr(os, "geteuid") and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return key if is_private and len(key) == _KEY_BYTES else b""


def _make_key(path: Path) -> None:
    draft = path.with_name(f"key-{secrets.token_hex(8)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
            file.write(secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):  # of two processes the first one's key stays, and is whole
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
