"""The way to one who is told about things, as the configuration wants it. Only the one that is used is imported."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from claudomator_py.domain.notice import NotifyTarget, TargetKind

if TYPE_CHECKING:
    from claudomator_py.notify.command import Command
    from claudomator_py.notify.webhook import Unconfigured, Webhook


def messenger(
    target: NotifyTarget,
    environ: Mapping[str, str],
    for_commands: Mapping[str, str],
    clock: Callable[[], float],
    umask: int = -1,
) -> "Command | Webhook | Unconfigured":
    """Return the way to that target. environ: where URL and secret are, if they are variables; for_commands: all that a
    command gets.

    clock: epoch seconds. umask: of a command; -1: that of this process. What its variables lack is found out by whoever
    tells.
    """
    timeout_s = target.timeout / 1000
    if target.kind is TargetKind.COMMAND:
        from claudomator_py.notify.command import Command

        return Command(target.command, for_commands, timeout_s, umask)
    from claudomator_py.notify.webhook import Unconfigured, Webhook

    for name in (target.url_env, target.secret_env):
        if name is not None and not environ.get(name):
            return Unconfigured(name)
    url = target.url or environ[target.url_env or ""]
    secret = environ[target.secret_env] if target.secret_env is not None else None
    return Webhook(url, target.format, secret, timeout_s, clock)
