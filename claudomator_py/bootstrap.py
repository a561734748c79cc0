"""The composition root: the only place that knows the concrete classes and puts them together into a daemon."""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from claudomator_py import __version__
from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.core import crashpoint as crash_points
from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.log import LogFormat
from claudomator_py.core.settings import (
    MODEL_KINDS,
    Classifier,
    ClassifierKind,
    Log,
    Settings,
    default_agent,
    settings_hash,
)
from claudomator_py.core.views import CheckView, FileProblemView
from claudomator_py.documents import taskfiles
from claudomator_py.documents.configfile import ConfigError, find_config, load_config, resolve_state_dir
from claudomator_py.planning.snapshot import Rules
from claudomator_py.runs.host import LocalRunHost
from claudomator_py.runs.launcher import Launcher
from claudomator_py.runs.watcher import RunWatcher
from claudomator_py.service.classifying import TierAsker
from claudomator_py.service.collecting import Collector
from claudomator_py.service.daemon import Daemon, StateLost
from claudomator_py.service.daemon_log import get_logger
from claudomator_py.service.daemon_log import set_up as set_up_log
from claudomator_py.service.environment import agent_environment
from claudomator_py.service.front_desk import FrontDesk
from claudomator_py.service.health import disk_check, inbox_checks
from claudomator_py.service.inbox.inbox import Inbox
from claudomator_py.service.intake import StoreIntake
from claudomator_py.service.launching import LaunchRules
from claudomator_py.service.metering import StoreMeter, Surroundings
from claudomator_py.service.observe import Observer
from claudomator_py.service.ports import TierModel
from claudomator_py.service.queries import Queries
from claudomator_py.service.reconciler import Reconciler
from claudomator_py.service.registry import AgentRegistry
from claudomator_py.service.secrets import Secrets
from claudomator_py.service.starting import Starter
from claudomator_py.service.state_lock import StateInUse, hold_state
from claudomator_py.service.workdirs import Workdirs, real_paths
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.schema import is_current
from claudomator_py.web.app import create_app
from claudomator_py.web.endpoint import (
    bind,
    bound_address,
    is_loopback,
    parse_listen,
    publish_endpoint,
    url_of,
    withdraw_endpoint,
)
from claudomator_py.web.operator_token import TokenFileError, ensure_token
from claudomator_py.web.server import WebServer
from claudomator_py.web.settings import WebSettings
from claudomator_py.web.streams import Streams

log = get_logger("claudomator")

HEALTH_S = 300.0
CRASH_VARIABLE = "CLAUDOMATOR_CRASH_AT"
EXIT_FAILURE = 1


class CannotStart(Exception):
    """The daemon cannot start; the message says why and what to do."""


def serve(
    config: Path | None, state_dir: Path | None, listen: str | None, log_format: LogFormat | None = None
) -> int:
    """Run the daemon until SIGTERM or SIGINT; the exit code of the process. log_format: instead of the configured."""
    set_up_log(Log(format=log_format or LogFormat.TEXT))
    _install_crash_hook()
    try:
        loaded = load_config(find_config(config, os.environ, Path.cwd()))
        told = loaded.settings.log
        set_up_log(told if log_format is None else told.model_copy(update={"format": log_format}))
        state = resolve_state_dir(state_dir, loaded.settings, os.environ, loaded.base_dir)
        with ExitStack() as stack:
            return asyncio.run(_serve(loaded.settings, state, listen, stack))
    except ConfigError as error:
        _say(str(error))
    except StoreUnavailable as error:
        _say(f"claudomator: {error.reason}; {error.remedy}")
    except (CannotStart, StateInUse, StateLost, TokenFileError, OSError, ValueError) as error:
        _say(f"claudomator: {error}")
    return EXIT_FAILURE


@dataclass(frozen=True, slots=True)
class _Parts:
    host: LocalRunHost
    registry: AgentRegistry
    reconciler: Reconciler
    observer: Observer
    workdirs: Workdirs


async def _serve(settings: Settings, state: Path, listen: str | None, stack: ExitStack) -> int:
    _make_private(state)
    in_place = stack.enter_context(hold_state(state))
    _remove_leftovers(state)
    database = stack.enter_context(Database.open(settings.database, state_dir=state))
    _migrate(database)
    launcher = Launcher()
    stack.callback(launcher.close)
    model = tier_model(settings.classifier, os.environ)
    asker = TierAsker(database, model, settings.classifier.timeout, now_ms) if model is not None else None
    if asker is not None:
        stack.callback(asker.close)
    parts = _assemble(settings, state, database, launcher, asker)
    await asyncio.to_thread(parts.registry.refresh)
    loop = asyncio.get_running_loop()
    watch = _Watch(loop, parts.host)
    stack.callback(watch.close)
    daemon = Daemon(parts.reconciler, watch, now_ms, in_place)
    watch.wake = daemon.wake
    database.on_commit(daemon.wake)
    intake = StoreIntake(database, parts.registry, lambda: parts.workdirs, now_ms)
    intake.keep_to(settings.inbox.paths)
    inbox = Inbox(
        settings.inbox.paths,
        intake,
        taskfiles,
        after_accept=settings.inbox.after_accept.value,
        on_change=daemon.wake,
    )

    def health() -> list[CheckView]:
        return [*daemon.health(), disk_check(state, settings.limits.min_free), *inbox_checks(inbox.status())]

    secrets = Secrets(parts.registry, os.environ, own=(ensure_token(state),))
    queries = Queries(
        database, parts.registry, parts.host, parts.observer, now_ms, lambda: _problems(inbox), health, secrets
    )
    desk = FrontDesk(database, queries, parts.registry, parts.host, lambda: parts.workdirs, now_ms)
    around = Surroundings(
        ticks=lambda: daemon.ticks,
        checks=lambda: desk.readiness().checks,
        refused_files=lambda: len(inbox.problems()),
        free_bytes=lambda: shutil.disk_usage(state).free,
        least_free_bytes=settings.limits.min_free,
    )
    meter = StoreMeter(database, parts.observer, now_ms, around)
    server, url = _web_server(desk, meter, settings, state, listen)
    publish_endpoint(state, url)
    stack.callback(lambda: withdraw_endpoint(state) if in_place() else None)
    _stop_on_signals(loop, daemon)
    inbox.start()
    stack.callback(inbox.stop)
    log.info("listening", url=url, version=__version__, inbox=", ".join(settings.inbox.paths), state=str(state))
    _tell_agents(parts.registry)
    serving = asyncio.create_task(server.serve())
    looking = asyncio.create_task(_keep_looking(parts.registry, daemon))
    try:
        await daemon.run()
    except StateLost as lost:
        remedy = "put it back, or start the daemon again to begin with an empty one"
        raise StateLost(f"the state folder {state} was removed or exchanged while it was in use; {remedy}") from lost
    finally:
        looking.cancel()
        server.stop()
        await serving
    log.info("stopped", note="runs go on without the daemon, and the next one finds them")
    return 0


async def _keep_looking(registry: AgentRegistry, daemon: Daemon) -> None:
    """Programs of agents are installed, upgraded and removed while the daemon runs."""
    while True:
        await asyncio.sleep(HEALTH_S)
        await asyncio.to_thread(registry.refresh)
        daemon.wake()


def _migrate(database: Database) -> None:
    if not is_current(database):
        from claudomator_py.store.migrate import migrate  # with alembic, which no other start needs

        migrate(database)


def tier_model(classifier: Classifier, environ: Mapping[str, str]) -> TierModel | None:
    """The classifier as configured; None for kind ``none``. Only the one that is used is imported, with its client."""
    key = environ.get(classifier.key_variable, "") if classifier.key_variable is not None else ""
    match classifier.kind:
        case ClassifierKind.NONE:
            return None
        case ClassifierKind.GEMINI_API:
            from claudomator_py.classify.gemini_api import GeminiApi

            return GeminiApi(classifier.model_name, classifier.base_url, key)
        case ClassifierKind.OPENAI:
            from claudomator_py.classify.openai import OpenAi

            return OpenAi(classifier.model_name, classifier.base_url, key or None)
        case ClassifierKind.GEMINI_CLI:
            from claudomator_py.classify.gemini_cli import GeminiCli

            nobody = AgentSpec(name="classifier", kind="gemini", pass_env=("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"))
            return GeminiCli(classifier.model_name, classifier.command, agent_environment(environ, nobody))


def _assemble(
    settings: Settings, state: Path, database: Database, launcher: Launcher, asker: TierAsker | None
) -> _Parts:
    grace_ms = settings.limits.grace
    host = LocalRunHost(state / "runs", launcher, grace_ms=grace_ms)
    agents = list(settings.agents.values()) if settings.agents_configured else detected_agents()
    registry = AgentRegistry(agents, AGENT_KINDS, os.environ.get("PATH", os.defpath))
    roots = tuple(Path(root) for root in settings.workdir_roots)
    workdirs = Workdirs(roots, (state, *(Path(path) for path in settings.inbox.paths)))
    rules = Rules(
        total=settings.concurrency.total,
        per_workdir=settings.concurrency.per_workdir,
        type_hint=settings.balancing.type_hint.value,
        when_all_limited=settings.balancing.when_all_limited.value,
        classifier=settings.classifier.kind is not ClassifierKind.NONE,
        settings_hash=settings_hash(settings),
    )
    launch_rules = LaunchRules(real_paths(roots), grace_ms, settings.limits.output_cap, dict(os.environ))
    observer = Observer(registry, lambda: rules, now_ms, lambda: shutil.disk_usage(state).free < settings.limits.min_free)
    reconciler = Reconciler(
        database,
        host,
        observer=observer,
        starter=Starter(database, registry, host, lambda: launch_rules),
        collector=Collector(database, registry, host, lambda: launch_rules),
        clock=now_ms,
        asker=lambda: asker,
    )
    return _Parts(host, registry, reconciler, observer, workdirs)


class _Watch:
    """Implements ``service.daemon.Watch`` with pidfds on the daemon's loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, host: LocalRunHost) -> None:
        self._host = host
        self._watcher = RunWatcher(loop, lambda _: self.wake())
        self.wake: Callable[[], None] = lambda: None

    def watch(self, run_id: str, step: int) -> None:
        pid = self._host.launched_pid(run_id, step)
        self._watcher.watch(f"{run_id}/{step}", self._host.path(run_id, step), pid)

    def close(self) -> None:
        self._watcher.close()


def now_ms() -> int:
    """The present, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def detected_agents() -> list[AgentSpec]:
    """Without configuration: the agent programs found on PATH; without any, a simulated one, named as such."""
    found = [default_agent(kind) for kind in MODEL_KINDS if shutil.which(kind) is not None]
    simulated = default_agent("simulated")
    return [*found, simulated.model_copy(update={"auto_select": not found})]


def _web_server(
    desk: FrontDesk, meter: StoreMeter, settings: Settings, state: Path, listen: str | None
) -> tuple[WebServer, str]:
    address = listen or settings.http.listen
    host, _ = parse_listen(address)
    if not is_loopback(host):
        log.warning("listening_to_others", address=address, note="the token is all that protects it")
    token = ensure_token(state)
    try:
        sock = bind(address)
    except OSError as error:
        raise CannotStart(
            f"cannot listen on {address} ({error.strerror}); choose another http.listen, or port 0 for a free one"
        ) from error
    streams = Streams()
    app = create_app(desk, WebSettings(token=token, listen=bound_address(sock)), meter, streams)
    return WebServer(app, sock, streams.close), url_of(sock)


def _problems(inbox: Inbox) -> list[FileProblemView]:
    return [FileProblemView(path=path, problems=problems) for path, problems in sorted(inbox.problems().items())]


def _stop_on_signals(loop: asyncio.AbstractEventLoop, daemon: Daemon) -> None:
    """The first signal stops in order; a second one exits at once, which loses nothing either."""
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            os._exit(EXIT_FAILURE)
        asked = True
        log.info("stopping", note="a second signal ends it at once")
        daemon.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def _tell_agents(registry: AgentRegistry) -> None:
    for agent in registry.agents:
        health = registry.health(agent.name)
        if health.problem is not None:
            log.warning("agent_unable", agent=agent.name, kind=agent.kind, problem=health.problem)
        else:
            log.info("agent_ready", agent=agent.name, kind=agent.kind, version=health.version or "not known")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def _remove_leftovers(state: Path) -> None:
    """Files that a killed daemon was about to rename; the lock is held, so they are nobody's."""
    for pattern in (".token.*", ".endpoint.*"):
        for path in state.glob(pattern):
            path.unlink(missing_ok=True)


def _install_crash_hook() -> None:
    """For tests: end this process, as kill -9 does, at the n-th passing of a named point: ``name`` or ``name:n``."""
    wanted, _, count = os.environ.get(CRASH_VARIABLE, "").partition(":")
    if not wanted:
        return
    left = int(count or 1)

    def hook(name: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    crash_points.install(hook)
