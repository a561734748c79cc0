"""Runs the daemon until it is told to end."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from claudomator_py import __version__
from claudomator_py.app.assemble import Components
from claudomator_py.app.configured import now_ms
from claudomator_py.app.in_force import Folders, Renewal, log_agents, refresh_agents, watched_folders
from claudomator_py.app.local import Ground, Local, prepare, surroundings
from claudomator_py.app.readiness import readiness_checks
from claudomator_py.app.startup import load, note_start, print_refusal, read_again, service_manager
from claudomator_py.app.web import Web, publish, withdraw
from claudomator_py.daemon import (
    handle_signals,
    ignore_signals,
    install_crash_hook,
    limit_heaps,
    lower_open_files,
    raise_open_files,
    skip_sqlite_statistics,
    use_huge_pages,
)
from claudomator_py.daemon.health import Pulse
from claudomator_py.daemon.locks import PublishedRecord
from claudomator_py.daemon.loop import Daemon, StateLost
from claudomator_py.daemon.reload import Current, Reloader
from claudomator_py.daemon.systemd import Notifier, Supervision
from claudomator_py.domain.errors import CannotServe
from claudomator_py.domain.health import CheckView
from claudomator_py.faults import error_text, is_known, remedy_of
from claudomator_py.log import get_logger
from claudomator_py.log import set_up as set_up_log
from claudomator_py.schema.configfile import ConfigError, LoadedConfig, resolve_state_dir
from claudomator_py.schema.settings import Log, LogFormat, OnStop, Settings
from claudomator_py.store.database import StoreUnavailable
from claudomator_py.telemetry import span_exporter
from claudomator_py.workers import Worker
from claudomator_py.workers.tracing import SpanSender

log = get_logger("claudomator")

HEALTH_S = 300.0
ON_STOP_VARIABLE = "CLAUDOMATOR_ON_STOP"
PRIVATE_UMASK = 0o077
EXIT_FAILURE = 1


def serve(config: Path | None, state_dir: Path | None, listen: str | None, log_format: LogFormat | None = None) -> int:
    """Run the daemon until SIGTERM or SIGINT; return the exit code of the process.

    log_format: overrides the configured format.
    """
    set_up_log(Log(format=log_format or LogFormat.TEXT))
    install_crash_hook(os.environ)
    limit_heaps()
    skip_sqlite_statistics()
    try:
        loaded = load(config)
        log_settings = loaded.settings.log
        set_up_log(log_settings if log_format is None else log_settings.model_copy(update={"format": log_format}))
        state = resolve_state_dir(state_dir, loaded.settings, os.environ, loaded.base_dir)
        with ExitStack() as stack:
            # The daemon's own files are private; what runs and commands write keeps the user's umask.
            umask = os.umask(PRIVATE_UMASK)
            stack.callback(os.umask, umask)
            files = raise_open_files()
            stack.callback(lower_open_files, files)
            code = asyncio.run(_serve(loaded, state, listen, umask, files, stack))
        ignore_signals()
        return code
    except ConfigError as error:
        print_refusal(str(error))
    except StoreUnavailable as error:
        print_refusal(f"claudomator: {error.reason}; {error.remedy}")
    except OSError as error:
        if not is_known(error):
            log.error("failed", exc_info=error)
        print_refusal(f"claudomator: {error_text(error)}; {remedy_of(error)}")
    except (CannotServe, ValueError) as error:
        print_refusal(f"claudomator: {error}")
    return EXIT_FAILURE


async def _serve(
    loaded: LoadedConfig, state: Path, listen: str | None, umask: int, files: int, stack: ExitStack
) -> int:
    settings, notifier = loaded.settings, service_manager()
    ground = prepare(settings, state, umask, files, notifier, stack)

    def health() -> list[CheckView]:
        return readiness_checks(
            daemon,
            folders,
            state,
            loop.health,
            reloader.check,
            lambda: (*workers, *local.around.notifications.workers),
        )

    local = surroundings(settings, ground, health, lambda: folders.tasks.is_surveyed(), stack)
    recalled = local.known.recall(local.around.registry.agents)
    await asyncio.to_thread(local.around.registry.begin, recalled)
    daemon = Components(local.around)
    stack.callback(daemon.engine.worktrees.close)
    loop = _loop(daemon, ground, notifier)
    _wake_on_news(daemon, loop)
    local.host.start_reading()
    folders = watched_folders(daemon, loop.wake)
    folders.tasks.claim(settings.inbox)
    stack.callback(folders.close)
    stack.callback(daemon.arrivals.cron.close)
    workers = _workers(daemon, settings, ground, stack)
    published = PublishedRecord(state, os.environ)
    renewal = Renewal(daemon, local.current, local.host, folders, state)
    reloader = _reloader(loaded, published, renewal, ground, notifier)
    web = Web(daemon, loop, settings.http, ground.token, listen or settings.http.listen, state)

    def stop() -> None:
        notifier.stopping()
        loop.stop(drain=_drains(local.current().settings))

    def leave() -> None:
        published.withdraw()
        with contextlib.suppress(OSError):
            withdraw(state, ground.in_place)

    handle_signals(
        asyncio.get_running_loop(), stop=stop, reload=lambda: loop.between_ticks(reloader.reload), leave=leave
    )
    publish(web.url, state, ground.in_place, stack)
    stack.callback(published.withdraw)
    published.publish(loaded)
    _start(daemon, workers, web, settings, state)
    note_start(ground.database)
    await _run(web, loop, local, folders, notifier, state, at_once=bool(recalled))
    log.info("stopped", note="runs continue without the daemon, and the next one finds them")
    return 0


def _reloader(
    loaded: LoadedConfig, published: PublishedRecord, renewal: Renewal, ground: Ground, notifier: Notifier
) -> Reloader:
    """What reads the configuration again. loaded: as it was read at the start."""
    last_read = Current(loaded)

    def read() -> Settings:
        again = read_again(loaded.path)
        published.publish(again)
        last_read.replace(again)
        return again.settings

    is_outdated, apply = (lambda: last_read().is_outdated()), renewal.apply_settings
    return Reloader(loaded.settings, read, is_outdated, apply, notifier, ground.database, now_ms)


def _loop(daemon: Components, ground: Ground, notifier: Notifier) -> Daemon:
    """The loop that drives the ticks, not yet running."""
    pulse = Pulse(lambda: daemon.surroundings.faults.current, now_ms)
    supervision, serving = Supervision(notifier, ground.database, now_ms, pulse), asyncio.get_running_loop()

    async def ticked() -> None:
        if notifier.enabled:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(supervision.ticked(), serving))

    return Daemon(
        daemon.engine.reconciler,
        daemon.surroundings.host.watch,
        now_ms,
        ground.in_place,
        pulse=pulse,
        ticked=ticked,
        longest_s=notifier.watchdog_s or HEALTH_S,
    )


def _wake_on_news(daemon: Components, loop: Daemon) -> None:
    """Wake the loop after every change that may give a tick something to do."""
    daemon.engine.worktrees.made = loop.wake
    daemon.surroundings.branches.recover()
    daemon.engine.worktrees.begin()
    daemon.surroundings.host.news = loop.wake
    daemon.surroundings.database.on_commit(loop.wake, planned=False)
    daemon.surroundings.database.on_commit(daemon.surroundings.notifications.wake)


def _start(daemon: Components, workers: Sequence[Worker], web: Web, settings: Settings, state: Path) -> None:
    """Start the background work and log it."""
    daemon.arrivals.cron.start()
    daemon.surroundings.notifications.follow(settings.notify)
    for worker in workers:
        worker.start()
    web.hub.start()
    log.info("listening", url=web.url, version=__version__, inbox=", ".join(settings.inbox.paths), state=str(state))
    log_agents(daemon.surroundings.registry, configured=settings.agents_configured)


def _workers(daemon: Components, settings: Settings, ground: Ground, stack: ExitStack) -> tuple[Worker, ...]:
    """All workers, none started; commits wake them and the stack closes them."""
    exporter = span_exporter(settings.telemetry, ground.environ)
    senders = () if exporter is None else (SpanSender(ground.database, exporter, now_ms, ground.secrets),)
    workers = (*daemon.background.workers, *senders)
    for worker in workers:
        stack.callback(worker.close)
        if worker.wakes_on_commit:
            ground.database.on_commit(worker.wake)
    return workers


async def _run(
    web: Web, loop: Daemon, local: Local, folders: Folders, notifier: Notifier, state: Path, *, at_once: bool
) -> None:
    """Serve and tick until the daemon is stopped. at_once: look at the agents first. Raises StateLost."""
    settings = local.current().settings
    serving = asyncio.create_task(web.server.serve())
    looking = asyncio.create_task(_keep_looking(local, loop, at_once=at_once))
    try:
        notifier.ready()
        # In a thread, so that requests are served however many files there are.
        await asyncio.to_thread(folders.follow, settings)
        # On a loop of its own, because its ticks block it.
        await asyncio.to_thread(asyncio.run, loop.run())
    except StateLost as lost:
        remedy = "put it back, or start the daemon again to begin with an empty one"
        raise StateLost(f"the state folder {state} was removed or exchanged while it was in use; {remedy}") from lost
    finally:
        looking.cancel()
        await web.hub.close()
        web.server.stop()
        await serving


async def _keep_looking(local: Local, loop: Daemon, *, at_once: bool) -> None:
    """Look for installed, upgraded and removed agents periodically, and move what heaps have grown by to huge pages.
    at_once: begin with a look."""
    registry = local.around.registry
    while True:
        if at_once:
            configured = local.current().settings.agents_configured
            try:
                await asyncio.to_thread(refresh_agents, registry, configured=configured)
            except Exception:
                # Keep looking: the next look may succeed.
                log.exception("agents_not_looked_at")
            loop.wake()
        at_once = True
        try:
            local.known.keep(registry.agents, registry.found)
        except OSError as error:
            log.warning("agents_not_kept", problem=str(error))
        await asyncio.to_thread(use_huge_pages)
        await asyncio.sleep(HEALTH_S)


def _drains(settings: Settings) -> bool:
    """Return whether stopping waits for live runs. The environment takes precedence: a unit that kills leftovers must
    be able to rely on it."""
    return OnStop(os.environ.get(ON_STOP_VARIABLE) or settings.on_stop) is OnStop.DRAIN
