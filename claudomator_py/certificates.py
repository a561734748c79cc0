"""Certificates of servers that are not trusted, in words for people."""

import ssl
from collections.abc import Mapping
from typing import Final

_AUTHORITY: Final = "if its authority is missing, name that in SSL_CERT_FILE of the daemon"
_NAME: Final = "use a name that it is for, or have the server use another"
_REMEDIES: Final[Mapping[int, str]] = {
    9: "compare the clocks of both machines",
    10: "renew it on the server; if it is new, compare the clocks of both machines",
    62: _NAME,
    64: _NAME,
}
"""By OpenSSL's codes (X509_V_ERR): not yet valid, expired, and for another host or address."""


def certificate_problem(error: BaseException | None) -> str | None:
    """Return why a server's certificate is not trusted and the remedy, as a clause that follows its name, if that has
    caused the error; None if something else has."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    return f"is not trusted: {error.verify_message}; {_REMEDIES.get(error.verify_code, _AUTHORITY)}"
