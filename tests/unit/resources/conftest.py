"""What commands and pages of resources are tried with: a command, and a browser without a window."""

from tests.unit.api.page.conftest import operator, stranger
from tests.unit.cli.conftest import command, daemon_url, forked, offline, process

__all__ = ["command", "daemon_url", "forked", "offline", "operator", "process", "stranger"]
