"""The surroundings of a daemon on this machine: its state folder, database and secrets, with runs as local
processes."""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.agents.programs import KnownHealth
from claudomator_py.api.endpoint import ANNOUNCED
from claudomator_py.app.configured import Configured, configured_by, now_ms
from claudomator_py.app.engine import Surroundings
from claudomator_py.app.in_force import agents_in, search_path
from claudomator_py.app.listening import make_private, remove_leftovers
from claudomator_py.app.startup import migrate_database, operator_token, ship_cards
from claudomator_py.daemon.locks import claim_database, hold_state
from claudomator_py.daemon.reload import Current
from claudomator_py.daemon.systemd import Notifier
from claudomator_py.dispatch.cheap_model import PrimaryJudge
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.health import CheckView
from claudomator_py.domain.notice import NotifyTarget
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.secrets import RunTokens, Secrets, agent_environment, with_credentials
from claudomator_py.faults import Faults
from claudomator_py.hosts.git.changes import ChangeRecorder
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.hosts.local import LocalRunHost
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.log import clean_with as clean_log_with
from claudomator_py.notify import messenger
from claudomator_py.ports import Messenger
from claudomator_py.schema.known_secrets import secrets_in, secrets_of
from claudomator_py.schema.settings import Settings
from claudomator_py.store.database import Database
from claudomator_py.values import dataclass
from claudomator_py.workers.notifications import NotificationDispatcher

AGENTS_FILE = "agents.json"


@dataclass(frozen=True, slots=True)
class Ground:
    """What the daemon builds on. Made once, before anything is assembled; a reload changes none of it."""

    state: Path
    in_place: Callable[[], bool]
    """Whether the state folder is still the one that this daemon locked."""
    token: str
    """The operator's token."""
    run_tokens: RunTokens
    environ: Mapping[str, str]
    """The daemon's environment variables, including its credentials."""
    secrets: Secrets
    database: Database
    launcher: Launcher


def prepare(settings: Settings, state: Path, umask: int, files: int, notifier: Notifier, stack: ExitStack) -> Ground:
    """Lock the state folder, open the database and bring it up to date. The stack closes what is opened.

    umask, files: the runs' umask and limit of open files. Raises StateExposed, StateInUse, StoreUnavailable,
    TokenFileError, OSError.
    """
    make_private(state)
    in_place = stack.enter_context(hold_state(state, ANNOUNCED))
    remove_leftovers(state)
    token = operator_token(state)
    run_tokens = RunTokens(token)
    environ = with_credentials(os.environ)
    # Everything that is stored, shown, logged or sent is redacted with these; secrets in the settings are added with
    # the agents.
    secrets = Secrets((token, *secrets_in(environ)), run_tokens.of)
    clean_log_with(secrets.redact)
    database = stack.enter_context(Database.open(settings.database, state_dir=state, is_daemon=True))
    database.clean = secrets.clean
    migrate_database(database, notifier)
    claim_database(database, state)
    ship_cards(database, wanted=settings.routing.shipped)
    launcher = Launcher(umask, files)
    stack.callback(launcher.close)
    return Ground(state, in_place, token, run_tokens, environ, secrets, database, launcher)


@dataclass(frozen=True, slots=True)
class Local:
    """The surroundings on this machine, and their parts that the startup still needs."""

    around: Surroundings
    current: Current[Configured]
    host: LocalRunHost
    known: KnownHealth
    """Stored health of agents, so that the next start need not check them first."""


def surroundings(
    settings: Settings,
    ground: Ground,
    health: Callable[[], list[CheckView]],
    files_known: Callable[[], bool],
    stack: ExitStack,
) -> Local:
    """Return the surroundings for these settings. health, files_known: see ``Surroundings``."""
    state, environ, secrets, database = ground.state, ground.environ, ground.secrets, ground.database
    agents = agents_in(settings)
    secrets.add(secrets_of(settings, agents, environ))
    registry = AgentRegistry(agents, AGENT_KINDS, search_path(), secrets.clean)
    trees = LocalTrees(state / "worktrees", environ, umask=ground.launcher.umask, clean=secrets.redact)
    branches = LocalBranches(trees)
    host = _run_host(settings, ground, registry, trees, branches)
    faults = Faults(now_ms, secrets.redact_piece)
    current = Current(configured_by(settings, environ, state, database, ground.run_tokens.of, None, registry, faults))
    stack.callback(lambda: current().close())
    stack.callback(host.close)
    for_commands = agent_environment(environ, AgentSpec(name="notify", kind="command"))

    def to(target: NotifyTarget) -> Messenger:
        return messenger(target, environ, for_commands, time.time, ground.launcher.umask)

    notifications = NotificationDispatcher(database, to, now_ms, secrets)
    stack.callback(notifications.close)
    judge = PrimaryJudge(database, lambda: current().cheap_model)
    stack.callback(judge.close)
    around = Surroundings(
        database=database,
        registry=registry,
        host=host,
        trees=trees,
        branches=branches,
        clock=now_ms,
        faults=faults,
        secrets=secrets,
        run_tokens=ground.run_tokens,
        environ=environ,
        current=current,
        disk_low=lambda: shutil.disk_usage(state).free < current().settings.limits.min_free,
        notifications=notifications,
        health=health,
        judge=judge.ask,
        files_known=files_known,
    )
    return Local(around, current, host, KnownHealth(state / AGENTS_FILE, search_path()))


def _run_host(
    settings: Settings, ground: Ground, registry: AgentRegistry, trees: LocalTrees, branches: LocalBranches
) -> LocalRunHost:
    """Return the host of the runs; the code for clusters is imported only if hosts are configured."""
    made: Callable[..., LocalRunHost] = LocalRunHost
    if settings.hosts:
        from claudomator_py.hosts.slurm.clones import Clones  # few have one
        from claudomator_py.hosts.slurm.host import ClusterRunHost

        made = partial(ClusterRunHost, hosts=settings.hosts, clones=Clones(trees, branches))
    return made(
        ground.state / "runs",
        ground.launcher,
        grace_ms=settings.limits.grace,
        kinds=registry.kinds,
        redactor=ground.secrets.redactor,
        clock=now_ms,
        recorder=ChangeRecorder(ground.environ),
    )
