"""Reloading the configuration: a valid one takes effect; an invalid one is refused and the current one kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from claudomator_py.daemon.systemd import Notifier
from claudomator_py.domain.health import CheckView
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.schema.settings import Settings, settings_hash
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import record

T = TypeVar("T")


class Current(Generic[T]):
    """Holds a value that is replaced as a whole; call it for the current one. A caller never sees half of a change."""

    def __init__(self, value: T) -> None:
        self._value = value

    def __call__(self) -> T:
        return self._value

    def replace(self, value: T) -> T:
        """Put another value in its place; return the former one."""
        former, self._value = self._value, value
        return former


log = get_logger("claudomator.reload")

RELOADABLE = frozenset(
    {"agents", "agents_configured", "balancing", "classifier", "concurrency", "inbox", "limits", "notify", "on_stop"}
    | {"budget", "policy", "reach", "reach_configured", "retention", "routing", "shadow", "workdir_roots"}
)
"""Top-level keys that take effect without a restart; all others need one."""


class ConfigurationRefused(Exception):
    """The configuration cannot be used. One line per problem: file, line, field, remedy."""


def in_force(started: Settings, wanted: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Return the wanted settings as far as a process started with other ones can use them, and the keys that need a
    restart."""
    fixed = {name: getattr(started, name) for name in Settings.model_fields if name not in RELOADABLE}
    waiting = tuple(sorted(name for name, value in fixed.items() if getattr(wanted, name) != value))
    return wanted.model_copy(update=fixed), waiting


class Reloader:
    """Rereads the configuration and has it put into force.

    read: returns the settings as now written; raises ConfigurationRefused. is_outdated: returns whether the file has
    changed since it was last read without a problem. take: puts settings in force; runs on the
    daemon's loop between two ticks, and changes nothing if it raises.
    """

    def __init__(
        self,
        started: Settings,
        read: Callable[[], Settings],
        is_outdated: Callable[[], bool],
        take: Callable[[Settings], Awaitable[None]],
        notifier: Notifier,
        database: Database,
        clock: Clock,
    ) -> None:
        self._started = started
        self._read = read
        self._is_outdated = is_outdated
        self._take = take
        self._notifier = notifier
        self._database = database
        self._clock = clock
        self._refusal: str | None = None
        self._waiting: tuple[str, ...] = ()

    async def reload(self) -> None:
        """Read the configuration again. The daemon continues whatever the result, which ``check`` reports."""
        self._notifier.reloading()
        try:
            settings, waiting = in_force(self._started, await asyncio.to_thread(self._read))
            await self._take(settings)
        except ConfigurationRefused as refused:
            self._refuse(str(refused))
        except Exception as error:
            log.exception("configuration_not_taken")
            self._refuse(f"it could not be taken into use: {error}")
        else:
            self._refusal, self._waiting = None, waiting
            reloaded = log.bind(needs_restart=", ".join(waiting)) if waiting else log
            reloaded.info("configuration_reloaded")
            await asyncio.to_thread(self._record, settings, waiting)
        finally:
            self._notifier.ready()

    def check(self) -> CheckView:
        """Return whether the configuration as last read is the one in force, and whether its file has changed since."""
        name = "configuration"
        if self._refusal is not None:
            detail = f"refused, the former one is in force: {self._refusal}"
            remedy = "correct what is named, then reload it: systemctl reload, or SIGHUP"
            return CheckView(name=name, ok=False, detail=detail, remedy=remedy, blocking=False)
        detail = "in force as it was last read"
        if self._waiting:
            detail = f"in force, but needs a restart: {', '.join(self._waiting)}"
        if self._is_outdated():
            detail += "; its file has changed since: reload it by systemctl reload or SIGHUP, or restart the daemon"
        return CheckView(name=name, ok=True, detail=detail)

    def _refuse(self, why: str) -> None:
        self._refusal = why
        log.error("configuration_refused", problem=why, note="the former one stays in force")

    def _record(self, settings: Settings, waiting: tuple[str, ...]) -> None:
        data = {"hash": settings_hash(settings), "needs_restart": list(waiting)}
        try:
            self._database.write(lambda connection: record(connection, self._clock(), "config_reloaded", data=data))
        except StoreUnavailable as error:
            log.warning("the reload could not be recorded: %s", error)
