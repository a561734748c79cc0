"""The operator's token: created at the first start, kept in a file that only its owner can read."""

import os
import secrets
import stat
from pathlib import Path
from typing import Self

from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.errors import CannotServe
from claudomator_py.private_files import create_private, flush, flush_path, unfinished

TOKEN_FILE = "token"  # noqa: S105 - the name of a file
_RANDOM_BYTES = 32
_MAX_LENGTH = 512
_SHORTEST = 16


class TokenFileError(CannotServe):
    """The token's file cannot be trusted or read. The message has the reason and a remedy."""

    @classmethod
    def of(cls, path: Path, why: str) -> Self:
        """Return the error for a file of our own, which a new one can replace. why: as a clause about the file."""
        return cls(f"{path} {why}. Delete it; a new token is created at the next start.")


def ensure_token(state_dir: Path) -> str:
    """Return the token in ``<state_dir>/token``, which is created, durably and with mode 0600, if it is missing.

    Two processes that start at once get the same token. Raises TokenFileError, OSError.
    """
    path = state_dir / TOKEN_FILE
    try:
        return read_token(path)
    except FileNotFoundError:
        _create(path, secrets.token_urlsafe(_RANDOM_BYTES))
    return read_token(path)


def credential_token(path: Path) -> str:
    """Return the token in a file that the service manager provides for this service, whoever owns the file.

    Raises TokenFileError, OSError.
    """
    with path.open("rb") as file:
        text = file.read(_MAX_LENGTH + 1).decode("ascii", "replace").strip()
    if not _is_token(text):
        raise TokenFileError(f"{path} does not hold a token. Give it {_SHORTEST} to {_MAX_LENGTH} ASCII characters.")
    return text


def read_token(path: Path) -> str:
    """Return the token in the file. Raises FileNotFoundError, and TokenFileError unless the file is valid and private
    to this user."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TokenFileError.of(path, f"cannot be read ({error.strerror})") from error
    try:
        fstat = os.fstat(descriptor)
        if not stat.S_ISREG(fstat.st_mode):
            raise TokenFileError.of(path, "is not a regular file")
        if fstat.st_uid != os.geteuid():
            raise TokenFileError.of(path, "belongs to another user")
        if stat.S_IMODE(fstat.st_mode) & 0o077:
            raise TokenFileError.of(path, "can be read by other users, so its token may be known")
        text = os.read(descriptor, _MAX_LENGTH + 1).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
    if not _is_token(text):
        raise TokenFileError.of(path, "does not hold a token")
    return text


def _is_token(text: str) -> bool:
    return _SHORTEST <= len(text) <= _MAX_LENGTH and text.isascii() and not any(c.isspace() for c in text)


def _create(path: Path, token: str) -> None:
    """Link a finished file into place, so that no reader sees half a token and no writer replaces another's."""
    new = unfinished(path)
    try:
        with create_private(new) as file:
            file.write(f"{token}\n".encode("ascii"))
            flush(file)
        crashpoint("token-written")
        try:
            os.link(new, path)
        except FileExistsError:
            return
        crashpoint("token-linked")
    finally:
        new.unlink(missing_ok=True)
    flush_path(path.parent)
