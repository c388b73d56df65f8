"""Recognize what this user wrote on this machine, by a digest under a key that stays here.

The owner of a file does not show it: a file that was downloaded or unpacked belongs to this user as well.
"""

import hmac
import os
import secrets
from contextlib import suppress
from functools import partial

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
        with suppress(FileExistsError), open(path, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        with path.open("rb") as file:
            status, key = os.fstat(file.fileno()), file.read(_KEY_BYTES + 1)
    except (OSError, RuntimeError):  # no home, or nothing may be written there
        return b""
    # Windows does not show the owner of a file
    is_private = hasattr(os, "geteuid") and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return key if is_private and len(key) == _KEY_BYTES else b""
