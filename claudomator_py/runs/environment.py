"""The variables that every agent gets: what a program needs to run at all, and no secret."""

import os
from collections.abc import Mapping

BASE_NAMES = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
)


def base_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The base variables that are set in environ. Anything else, proxies included, an agent gets by ``pass_env``."""
    return {name: environ[name] for name in BASE_NAMES if name in environ}
