"""Creation of configured notification targets. Only those in use are imported."""

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
    """Return the messenger for a target. environ: has the URL and secret if variables name them; for_commands: the
    whole environment of a command.

    clock: epoch seconds. umask: of a command; -1: this process's. A missing variable does not raise here: sending
    fails.
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
