"""The daemon, put together and run until it is told to end."""

import asyncio
import os
import shutil
import sys
import time
import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pydantic.warnings import UnsupportedFieldAttributeWarning

import claudomator_py.app.lean  # noqa: F401 - before anything that logs
from claudomator_py import __version__
from claudomator_py.agents.programs import KnownHealth
from claudomator_py.api.app import create_app
from claudomator_py.api.endpoint import (
    ANNOUNCED,
    bound_address,
    publish_endpoint,
    url_of,
    withdraw_endpoint,
)
from claudomator_py.api.guard.operator_token import TokenFileError
from claudomator_py.api.server import WebServer
from claudomator_py.api.settings import WebSettings
from claudomator_py.api.streams import Streams
from claudomator_py.app.configured import now_ms
from claudomator_py.app.listening import CannotListen, StateExposed, make_private, open_sockets, remove_leftovers
from claudomator_py.app.parts import (
    Parts,
    agents_check,
    assemble,
    calibration_checks,
    card_folders,
    log_agents,
    put_in_force,
    refresh_agents,
    search_path,
    trouble_checks,
)
from claudomator_py.app.process import give_back, lower_open_files, raise_open_files
from claudomator_py.app.startup import bring_up_to_date, load, operator_token, read_again, service_manager, ship_cards
from claudomator_py.daemon.health import Pulse, card_folder_checks, disk_check, inbox_checks
from claudomator_py.daemon.learning import Learner
from claudomator_py.daemon.locks import StateInUse, claim_database, hold_state
from claudomator_py.daemon.loop import Daemon, StateLost
from claudomator_py.daemon.metering import Meter, ProcessGauges
from claudomator_py.daemon.record import PublishedRecord
from claudomator_py.daemon.reload import Reloader
from claudomator_py.daemon.retention import Retainer
from claudomator_py.daemon.signals import handle_signals, install_crash_hook
from claudomator_py.daemon.systemd import Supervision
from claudomator_py.dispatch.channel_answers import AnswerDispatcher
from claudomator_py.dispatch.hub import Hub
from claudomator_py.dispatch.notifications import NotificationDispatcher
from claudomator_py.dispatch.primary_judge import PrimaryJudge
from claudomator_py.dispatch.tracing import SpanSender
from claudomator_py.dispatch.waking import knock
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.notice import NotifyTarget
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.domain.redaction import Redactor
from claudomator_py.domain.text import escaped
from claudomator_py.domain.views import CheckView
from claudomator_py.environment.secrets import Secrets
from claudomator_py.environment.variables import RunTokens, agent_environment, with_credentials
from claudomator_py.faults import Fault, Faults
from claudomator_py.faults import checks as fault_checks
from claudomator_py.hosts.local.launcher import Launcher
from claudomator_py.log import clean_with as clean_log_with
from claudomator_py.log import get_logger
from claudomator_py.log import set_up as set_up_log
from claudomator_py.notify.configured import messenger
from claudomator_py.ports import Messenger
from claudomator_py.queries.queries import Queries
from claudomator_py.schema.configfile import ConfigError, LoadedConfig, resolve_state_dir
from claudomator_py.schema.known_secrets import secrets_in
from claudomator_py.schema.settings import Inbox, Log, LogFormat, OnStop, Settings
from claudomator_py.schema.trust import InboxGuard
from claudomator_py.service.access import Access
from claudomator_py.service.channels import Channels
from claudomator_py.service.cleanup import Cleaner
from claudomator_py.service.keyring import Keyring
from claudomator_py.service.learning import Learned
from claudomator_py.service.notices import Notices
from claudomator_py.service.policy import PolicyService
from claudomator_py.service.run_requests import RunRequests
from claudomator_py.service.schedules import Schedules
from claudomator_py.service.specialists import Specialists
from claudomator_py.service.task_service import TaskService
from claudomator_py.service.tokens import Tokens
from claudomator_py.service.webhooks import IncomingWebhooks
from claudomator_py.sources.inbox.claims import InboxInUse
from claudomator_py.sources.inbox.inbox import ConfiguredInbox
from claudomator_py.sources.inbox.intake import StoreIntake
from claudomator_py.sources.inbox.refusals import Refusals
from claudomator_py.sources.schedules import CronWorker, ScheduleRunner
from claudomator_py.sources.specialists import CARD_FILES, CardIntake
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.tasks.idempotency import IdempotentRequests
from claudomator_py.telemetry.configured import span_exporter
from claudomator_py.worker import Worker

# FastAPI ignores it while it declares its fields, which it makes of ours: now they are built later.
warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)

log = get_logger("claudomator")

HEALTH_S = 300.0
AGENTS_FILE = "agents.json"
ON_STOP_VARIABLE = "CLAUDOMATOR_ON_STOP"
PRIVATE_UMASK = 0o077
EXIT_FAILURE = 1


def serve(config: Path | None, state_dir: Path | None, listen: str | None, log_format: LogFormat | None = None) -> int:
    """Run the daemon until SIGTERM or SIGINT; the exit code of the process. log_format: instead of the configured."""
    set_up_log(Log(format=log_format or LogFormat.TEXT))
    install_crash_hook(os.environ)
    give_back()
    try:
        loaded = load(config)
        told = loaded.settings.log
        set_up_log(told if log_format is None else told.model_copy(update={"format": log_format}))
        state = resolve_state_dir(state_dir, loaded.settings, os.environ, loaded.base_dir)
        with ExitStack() as stack:
            # All that is ours is private; what runs and commands write is as open as the user has it.
            umask = os.umask(PRIVATE_UMASK)
            stack.callback(os.umask, umask)
            files = raise_open_files()
            stack.callback(lower_open_files, files)
            return asyncio.run(_serve(loaded, state, listen, umask, files, stack))
    except ConfigError as error:
        _say(str(error))
    except StoreUnavailable as error:
        _say(f"claudomator: {error.reason}; {error.remedy}")
    except (
        CannotListen,
        InboxInUse,
        StateExposed,
        StateInUse,
        StateLost,
        TokenFileError,
        OSError,
        ValueError,
    ) as error:
        _say(f"claudomator: {error}")
    return EXIT_FAILURE


async def _serve(
    loaded: LoadedConfig, state: Path, listen: str | None, umask: int, files: int, stack: ExitStack
) -> int:
    settings = loaded.settings
    notifier = service_manager()
    make_private(state)
    in_place = stack.enter_context(hold_state(state, ANNOUNCED))
    remove_leftovers(state)
    token = operator_token(state)
    run_tokens = RunTokens(token)
    environ = with_credentials(os.environ)
    # All that is stored, shown, logged or sent goes through this one; the settings' own are added with their parts.
    secrets = Secrets((token, *secrets_in(environ)), run_tokens.of)
    clean_log_with(secrets.redact)
    database = stack.enter_context(Database.open(settings.database, state_dir=state))
    database.clean_with(secrets.clean)
    bring_up_to_date(database, notifier)
    claim_database(database, state)
    ship_cards(database, wanted=settings.routing.shipped)
    launcher = Launcher(umask, files)
    stack.callback(launcher.close)
    parts = assemble(settings, environ, state, database, launcher, secrets, run_tokens.of)
    stack.callback(parts.close)
    known = KnownHealth(state / AGENTS_FILE, search_path())
    recalled = known.recall(parts.registry.agents)
    await asyncio.to_thread(parts.registry.begin, recalled)
    pulse = Pulse(lambda: parts.faults.doing, now_ms)
    daemon = Daemon(
        parts.reconciler,
        parts.host.watch,
        now_ms,
        in_place,
        pulse=pulse,
        ticked=Supervision(notifier, database, now_ms, pulse).ticked,
        longest_s=notifier.watchdog_s or HEALTH_S,
    )
    parts.isolating.made = daemon.wake
    parts.isolating.begin()
    parts.host.news = daemon.wake
    parts.host.start_reading()
    database.on_commit(daemon.wake, planned=False)
    # Of what is done beside the ticks: each thread has its own.
    schedule_faults, retention_faults = (Faults(now_ms, secrets.redact_piece) for _ in range(2))
    runner = ScheduleRunner(database, parts.registry, lambda: parts.workdirs, now_ms, schedule_faults)
    cron_worker = CronWorker(runner, lambda: inbox.looked())
    intake = StoreIntake(database, parts.registry, lambda: parts.workdirs, now_ms, cron_worker.wake)
    refusals = Refusals(secrets.clean)
    inbox = ConfiguredInbox(intake, _guarding, daemon.wake, refusals)
    card_intake = CardIntake(database, now_ms, parts.twins)
    parts.reconciler.arriving = inbox.arriving
    cards = ConfiguredInbox(card_intake, _guarding, daemon.wake, refusals, CARD_FILES, claims=False)
    inbox.claim(settings.inbox)
    stack.callback(inbox.close)
    stack.callback(cards.close)
    stack.callback(cron_worker.close)
    for_commands = agent_environment(environ, AgentSpec(name="notify", kind="command"))

    def to(target: NotifyTarget) -> Messenger:
        return messenger(target, environ, for_commands, time.time, umask)

    notifications = NotificationDispatcher(database, to, now_ms, secrets)
    stack.callback(notifications.close)
    database.on_commit(notifications.wake)
    exporter = span_exporter(settings.telemetry, environ)
    sender = None if exporter is None else SpanSender(database, exporter, now_ms, secrets)
    published = PublishedRecord(state, os.environ)

    def read() -> Settings:
        again = read_again(loaded.path)
        published.publish(again)
        return again.settings

    reloader = Reloader(
        settings,
        read,
        partial(put_in_force, parts, inbox, cards, notifications, environ, state, database, secrets),
        notifier,
        database,
        now_ms,
    )

    def least_free() -> int:
        return parts.current().settings.limits.min_free

    def faults() -> list[Fault]:
        return [*parts.faults.all(), *schedule_faults.all(), *retention_faults.all()]

    def health() -> list[CheckView]:
        return [
            *daemon.health(),
            *fault_checks(faults()),
            reloader.check(),
            disk_check(state, least_free()),
            agents_check(parts),
            *calibration_checks(parts, database),
            *trouble_checks(parts),
            *inbox_checks(inbox.status()),
            *card_folder_checks(cards.status()),
            *(check for worker in (*workers, *notifications.workers) if (check := worker.check()) is not None),
        ]

    keyring = Keyring(database, now_ms, run_tokens)
    queries = Queries(
        database,
        parts.registry,
        parts.host,
        parts.observer,
        now_ms,
        refusals,
        health,
        secrets,
        parts.faults,
        parts.isolating.trees,
    )
    repeats = IdempotentRequests(database, now_ms)
    schedules = Schedules(
        database, parts.registry, lambda: parts.workdirs, now_ms, queries.task_views, repeats, cron_worker.wake
    )
    cleaner = Cleaner(database, parts.host, parts.isolating, now_ms)
    retainer = Retainer(
        database,
        lambda: parts.current().settings.retention,
        lambda: parts.current().settings.notify,
        cleaner,
        parts.host,
        parts.isolating.trees,
        now_ms,
        retention_faults,
    )
    learner = Learner(database, lambda: parts.current().settings.learning, now_ms)
    service = TaskService(
        database,
        queries,
        parts.registry,
        parts.host,
        lambda: parts.workdirs,
        now_ms,
        cleaner,
        repeats,
        lambda: parts.current().policing,
    )
    notices, tokens = Notices(database, notifications, now_ms), Tokens(database, keyring, now_ms)
    specialists = Specialists(database, now_ms, repeats, parts.cosines, parts.preview, parts.twins)
    judge = PrimaryJudge(database, parts.cheap_model, now_ms)
    stack.callback(judge.close)
    checks = parts.message_checks
    channels = Channels(database, now_ms, repeats, lambda: parts.workdirs, judge.ask, parts.preview, checks)
    answers = AnswerDispatcher(database, lambda: parts.workdirs, now_ms, checks)
    workers: list[Worker] = [retainer, learner, answers, parts.shadow, *([] if sender is None else [sender])]
    for worker in workers:
        stack.callback(worker.close)
        if worker.wakes_on_commit:
            database.on_commit(worker.wake)
    learned = Learned(database, now_ms, lambda: parts.current().settings.routing.default_specialist)
    webhooks = IncomingWebhooks(channels, environ, now_ms)
    run_requests = RunRequests(database, now_ms, parts.host, lambda: parts.current().launch, secrets, repeats)
    policy = PolicyService(
        database,
        lambda: parts.current().policing.policy,
        now_ms,
        lambda: parts.current().settings.routing.enabled,
        lambda: parts.current().settings.budget,
        parts.registry,
    )
    access = Access(
        service, queries, schedules, notices, tokens, specialists, learned, channels, webhooks, run_requests, policy
    )
    gauges = ProcessGauges(
        ticks=lambda: daemon.ticks,
        checks=lambda: queries.as_(OPERATOR).readiness().checks,
        refused_files=lambda: len(refusals),
        free_bytes=lambda: shutil.disk_usage(state).free,
        least_free_bytes=least_free,
        faults=faults,
    )
    meter = Meter(database, parts.observer, now_ms, gauges)
    stack.callback(lambda: withdraw_endpoint(state) if in_place() else None)
    sockets = open_sockets(listen or settings.http.listen, state)
    url = url_of(sockets[0])
    web = WebSettings(token=token, listen=bound_address(sockets[0]), allowed_hosts=settings.http.allowed_hosts)
    hub = Hub(database, parts.host, parts.registry, knock)
    parts.registry.is_present = hub.is_present
    database.on_commit(hub.wake)
    streams = Streams()
    app = create_app(access, web, keyring, meter, streams, redactor=secrets.redactor, database=database, hub=hub)
    server = WebServer(app, sockets, streams.close)
    publish_endpoint(state, url)
    stack.callback(published.withdraw)
    published.publish(loaded)

    def stop() -> None:
        notifier.stopping()
        daemon.stop(drain=_drains(parts.current().settings))

    handle_signals(asyncio.get_running_loop(), stop=stop, reload=lambda: daemon.between_ticks(reloader.reload))
    cron_worker.start()
    notifications.follow(settings.notify)
    for worker in workers:
        worker.start()
    hub.start()
    log.info("listening", url=url, version=__version__, inbox=", ".join(settings.inbox.paths), state=str(state))
    log_agents(parts)
    serving = asyncio.create_task(server.serve())
    looking = asyncio.create_task(_keep_looking(parts, daemon, known, at_once=bool(recalled)))
    try:
        await server.until_up()
        notifier.ready()
        # However many files there are, or were: who asks has an answer meanwhile.
        await asyncio.to_thread(inbox.follow, settings.inbox)
        await asyncio.to_thread(cards.follow, card_folders(settings))
        await daemon.run()
    except StateLost as lost:
        remedy = "put it back, or start the daemon again to begin with an empty one"
        raise StateLost(f"the state folder {state} was removed or exchanged while it was in use; {remedy}") from lost
    finally:
        looking.cancel()
        await hub.close()
        server.stop()
        await serving
    log.info("stopped", note="runs continue without the daemon, and the next one finds them")
    return 0


async def _keep_looking(parts: Parts, daemon: Daemon, known: KnownHealth, *, at_once: bool) -> None:
    """Programs of agents are installed, upgraded and removed while the daemon runs. at_once: begin with a look."""
    while True:
        if at_once:
            try:
                await asyncio.to_thread(refresh_agents, parts)
            except Exception:
                # The next look may see more; that there is one matters most.
                log.exception("agents_not_looked_at")
            daemon.wake()
        at_once = True
        try:
            known.keep(parts.registry.agents, parts.registry.found)
        except OSError as error:
            log.warning("agents_not_kept", problem=str(error))
        await asyncio.sleep(HEALTH_S)


def _drains(settings: Settings) -> bool:
    """Whether live runs are awaited. The environment goes first: a unit that ends what is left has to be sure of it."""
    return OnStop(os.environ.get(ON_STOP_VARIABLE) or settings.on_stop) is OnStop.DRAIN


def _guarding(wanted: Inbox) -> InboxGuard:
    guard = InboxGuard(wanted)
    if guard.unknown:
        log.warning("trusted_but_unknown", names=", ".join(guard.unknown), note="no user or group of that name")
    return guard


def _say(text: str) -> None:
    sys.stderr.write(f"{escaped(Redactor().redact(text))}\n")
