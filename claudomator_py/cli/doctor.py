"""``doctor``: what could keep the daemon from working, each with what to do about it."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import typer

import claudomator_py
from claudomator_py.cli import exits
from claudomator_py.cli.connect import ConfigOption, StateDirOption, connect
from claudomator_py.cli.output import Format, FormatOption, note, out, out_json
from claudomator_py.cli.table import Column, render
from claudomator_py.client.errors import ClientError, DiscoveryFailed
from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.settings import MODEL_KINDS, SUPPORTED_KINDS, Settings, default_agent
from claudomator_py.core.units import format_size
from claudomator_py.core.views import AgentView, CheckView

_COLUMNS = (Column("OK"), Column("CHECK"), Column("FOUND", flexible=True))
_CLOCK_SLACK_S = 24 * 60 * 60


def doctor(
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Look for what could keep it from working.

    Configuration, folders, disk, daemon, agents, git and clock, each with its remedy; exits with 1 if one is not ok.
    """
    checks = list(_checks(config, state_dir))
    if output is Format.JSON:
        out_json(checks)
    else:
        rows = [("ok" if check.ok else "no", check.name, check.detail) for check in checks]
        out(render(_COLUMNS, rows, wide=output is Format.WIDE))
        for check in checks:
            if check.remedy and not check.ok:
                note(f"{check.name}: {check.detail}\n  {check.remedy}")
    if not all(check.ok for check in checks):
        raise typer.Exit(exits.FAILURE)


def _checks(config: Path | None, state_dir: Path | None) -> Iterator[CheckView]:
    from claudomator_py.client.discovery import configuration
    from claudomator_py.documents.configfile import resolve_state_dir

    settings = Settings()
    known_agents: list[AgentView] | None = None
    try:
        loaded = configuration(config, os.environ, Path.cwd())
    except DiscoveryFailed as error:
        yield _no("configuration", error.detail, "Correct what is named, or name another file with --config.")
    else:
        settings = loaded.settings
        yield _ok("configuration", str(loaded.path or "none found: the defaults are used"))
        folder = resolve_state_dir(state_dir, settings, os.environ, loaded.base_dir)
        yield _state_folder(folder)
        yield _disk(folder, settings.limits.min_free)
        for path in settings.inbox.paths:
            yield _inbox(loaded.base_dir / path)
        daemon, known_agents = _daemon(config, state_dir)
        yield from daemon
    yield from _agents_asked(known_agents) if known_agents is not None else _agents_here(settings)
    yield _git()
    yield _clock()


def _ok(name: str, detail: str) -> CheckView:
    return CheckView(name=name, ok=True, detail=detail)


def _no(name: str, detail: str, remedy: str) -> CheckView:
    return CheckView(name=name, ok=False, detail=detail, remedy=remedy)


def _state_folder(folder: Path) -> CheckView:
    name = "state folder"
    if not folder.exists():
        parent = _nearest(folder)
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            return _ok(name, f"{folder} will be made at the first start")
        return _no(
            name, f"{folder} cannot be made: {parent} is not writable", "Set state_dir to a folder you can write."
        )
    if not folder.is_dir():
        return _no(name, f"{folder} is not a folder", "Remove it, or set state_dir to a folder.")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return _no(name, f"{folder} is not writable", "Mend its permissions, or set state_dir to another folder.")
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return _no(name, f"{folder} is open to other users", f"Run: chmod 700 {folder}")
    return _ok(name, str(folder))


def _disk(folder: Path, least: int) -> CheckView:
    free = shutil.disk_usage(_nearest(folder)).free
    detail = f"{free / 2**30:.1f}GiB free for the state folder"
    if free >= least:
        return _ok("disk space", detail)
    remedy = f"Make room, or lower limits.min_free ({format_size(least)}): below it nothing is started."
    return _no("disk space", detail, remedy)


def _inbox(folder: Path) -> CheckView:
    if not folder.exists():
        parent = _nearest(folder)
        if os.access(parent, os.W_OK | os.X_OK):
            return _ok("inbox", f"{folder} will be made at the first start")
        return _no("inbox", f"{folder} cannot be made: {parent} is not writable", "Make it, or change inbox.paths.")
    if folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return _ok("inbox", str(folder))
    return _no("inbox", f"{folder} is no folder that can be read and written", "Mend it, or change inbox.paths.")


def _daemon(config: Path | None, state_dir: Path | None) -> tuple[list[CheckView], list[AgentView] | None]:
    """The daemon's checks, and the agents as it sees them; its PATH may differ from ours."""
    try:
        with connect(config, state_dir) as client:
            found = client.readiness()
            agents = client.agents()
    except ClientError as error:
        return [_no("daemon", error.detail, error.remedy)], None
    verdict = _ok("daemon", f"{client.base_url} is ready")
    if not found.ready:
        verdict = _no("daemon", f"{client.base_url} is not ready", "Mend what the checks of the daemon below name.")
    inside = [check.model_copy(update={"name": f"daemon: {check.name}"}) for check in found.checks]
    return [verdict, *inside], agents


def _agents_asked(agents: list[AgentView]) -> Iterator[CheckView]:
    if not agents:
        yield _no_agents()
    for agent in agents:
        name = f"agent {agent.name}"
        if agent.problem is not None or not agent.installed:
            yield _no(name, agent.problem or "its program is not installed", "Mend that, or remove the agent.")
        else:
            found = " ".join(part for part in (agent.program, agent.version) if part) or "built in"
            yield _ok(name, "; ".join([found, *agent.cannot_enforce]))


def _agents_here(settings: Settings) -> Iterator[CheckView]:
    if not settings.agents_configured:
        kinds = [kind for kind in MODEL_KINDS if kind in SUPPORTED_KINDS]
        found = [check for kind in kinds if (check := _agent_here(default_agent(kind))).ok]
        yield from found or [_no_agents()]
    for agent in settings.agents.values():
        yield _agent_here(agent)


def _agent_here(agent: AgentSpec) -> CheckView:
    name = f"agent {agent.name}"
    if not agent.command:
        return _ok(name, "built in")
    program = shutil.which(agent.command[0])
    if program is not None:
        return _ok(name, program)
    remedy = f"Install it, or set agents.{agent.name}.command to where it is."
    return _no(name, f"{agent.command[0]} is not on PATH", remedy)


def _no_agents() -> CheckView:
    return _no(
        "agents", "none is configured, and none was found on PATH", "Install the claude command, or configure one."
    )


def _git() -> CheckView:
    program = shutil.which("git")
    if program is not None:
        return _ok("git", program)
    return _no("git", "git is not on PATH", "Install git: agents that work in repositories need it.")


def _clock() -> CheckView:
    """A clock before the installation of this program cannot be right."""
    installed = Path(claudomator_py.__file__).stat().st_mtime
    now = time.time()
    detail = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    if now < installed - _CLOCK_SLACK_S:
        return _no("clock", f"{detail} is before this program was installed", "Set the clock: limits end by it.")
    return _ok("clock", detail)


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.parents) if place.exists())
