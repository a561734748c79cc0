"""Agents: whether they are installed and have a login. Its presence is all: no service is called, no key is read."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from claudomator_py.cli.doctor import Finding, ok, problem, warn
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.kind import LoginCaveat, LoginFile
from claudomator_py.resources.agents import AgentView
from claudomator_py.schema.agent_settings import FOUND_KINDS, default_agent, no_agent_message
from claudomator_py.schema.settings import Settings

NOT_VERIFIED = "not verified against the service"


def agent_findings(settings: Settings, asked: list[AgentView] | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about every agent. asked: the agents as the daemon sees them, with its own PATH; None: no daemon
    answered."""
    if asked is None:
        yield from _here(settings, environ)
        return
    for view in asked:
        health = _asked(view)
        yield health
        if view.installed:
            spec = settings.agents.get(view.name) or AgentSpec(name=view.name, kind=view.kind)
            yield from login(spec, environ)


def login(agent: AgentSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what the agent can log in with, as seen from here; nothing for a kind without a login."""
    how = agent.info.login
    if how is None:
        return
    name = f"login {agent.name}"
    if not how.variables and not how.files:
        yield ok(name, f"how it logs in is not known; `{how.command}` logs it in")
        return
    if agent.limited_by_login(environ).max_concurrent < agent.max_concurrent:
        wanted = how.variables[0] if how.variables else "a key"
        remedy = f"Set max_concurrent: 1, or give it a key: pass_env: [{wanted}] in agents.{agent.name}."
        yield warn(name, "it has one slot, as only one node at a time can refresh a login", remedy)
    own = dict(environ) | agent.env
    given = [known for known in how.variables if known in agent.env or (known in agent.pass_env and environ.get(known))]
    if given:
        yield ok(name, f"it gets {given[0]}; {NOT_VERIFIED}")
        return
    for known in how.files:
        path = _path(known, own)
        if known.setting and (chosen := _chosen(path, known.setting)):
            yield ok(name, f"its settings choose {chosen}; {NOT_VERIFIED}")
            return
        if not known.setting and path.is_file():
            yield _there(name, path, known.caveat, own)
            return
    kept_back = [known for known in how.variables if environ.get(known) and known not in agent.pass_env]
    if kept_back:
        remedy = (
            f"Add pass_env: [{kept_back[0]}] to agents.{agent.name}; agents get only the keys that are named there."
        )
        yield warn(name, f"{kept_back[0]} is set here, but the agent does not get it", remedy)
        return
    passed = [known for known in how.variables if known in agent.pass_env]
    if passed:
        remedy = f"Set {passed[0]} where the daemon is started; one that has it already needs nothing."
        yield warn(name, f"{passed[0]} is not set here, and no login was found", remedy)
        return
    remedy = f"Log in with `{how.command}` as the daemon's user"
    remedy += f", or name a key's variable in agents.{agent.name}.pass_env." if how.variables else "."
    yield warn(name, "found neither a login nor a key", remedy)


def login_files(agent: AgentSpec, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of the agent's login that exist here; none if it gets a key."""
    how, own = agent.info.login, dict(environ) | agent.env
    if how is None or any(name in agent.env or name in agent.pass_env for name in how.variables):
        return
    yield from (path for known in how.files if not known.setting and (path := _path(known, own)).is_file())


def _there(name: str, path: Path, caveat: LoginCaveat | None, environ: Mapping[str, str]) -> Finding:
    detail = f"{path} exists; {NOT_VERIFIED}"
    if caveat is None or environ.get(caveat.settled_by):
        return ok(name, detail)
    detail = f"{detail}; {caveat.text}"
    return ok(name, detail) if caveat.remedy is None else warn(name, detail, caveat.remedy)


def _path(login: LoginFile, environ: Mapping[str, str]) -> Path:
    moved = environ.get(login.variable) if login.variable else None
    return (Path(moved) if moved else Path(environ.get("HOME", "/")) / login.folder) / login.file


def _chosen(settings: Path, keys: tuple[str, ...]) -> str | None:
    """Return the login method in the program's settings, which contain no key."""
    try:
        chosen = json.loads(settings.read_text())
        for key in keys:
            chosen = chosen[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return chosen if isinstance(chosen, str) and chosen.replace("-", "").isalnum() else None


def _asked(agent: AgentView) -> Finding:
    name = f"agent {agent.name}"
    if agent.problem is not None or not agent.installed:
        return problem(name, agent.problem or "its program is not installed", "Fix that, or remove the agent.")
    version = " ".join(part for part in (agent.program, agent.version) if part) or "built in"
    return ok(name, "; ".join([version, *agent.cannot_enforce]))


def _here(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    if not settings.agents_configured:
        agents = [agent for agent in map(default_agent, FOUND_KINDS) if shutil.which(agent.command[0])]
        for agent in agents:
            yield from (_installed(agent), *login(agent, environ))
        if not agents:
            remedy = "Install one and log in, or configure its program under agents; until then, such tasks wait."
            yield warn("agents", no_agent_message(environ.get("PATH", os.defpath)), remedy)
    for agent in settings.agents.values():
        yield (installed := _installed(agent))
        if installed.remedy is None:
            yield from login(agent, environ)


def _installed(agent: AgentSpec) -> Finding:
    name = f"agent {agent.name}"
    if not agent.command:
        return ok(name, "built in")
    program = shutil.which(agent.command[0])
    if program is not None:
        return ok(name, os.fspath(program))
    remedy = f"Install it, or set agents.{agent.name}.command to its path."
    return problem(name, f"{agent.command[0]} is not on PATH", remedy)
