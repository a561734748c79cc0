"""The configuration file: where it is found, what it says, and whether it is the user's own."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Problem
from claudomator_py.schema.settings import Settings, parse_settings
from claudomator_py.schema.validation import described, zone_problem
from claudomator_py.schema.yamltext import MAX_BYTES, BadText, decode, read_documents

FILE_NAME = "claudomator.yaml"
CONFIG_VARIABLE = "CLAUDOMATOR_CONFIG"
_SYSTEM = Path("/etc/claudomator") / FILE_NAME


class ConfigError(Exception):
    """The configuration cannot be used. Its text has a line for each problem: file, line, field, remedy."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(problem.render(str(path)) for problem in problems))
        self.path = path
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """Settings with absolute paths. path: the file they are from, if any. base_dir: what relative paths are under."""

    settings: Settings
    path: Path | None
    base_dir: Path


def find_config(explicit: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration file to use, absolute; None if there is none.

    In this order: the one named, ``$CLAUDOMATOR_CONFIG``, the working directory, the user's own, the system's. One that
    is named is returned whether it exists or not, so that loading it says what is wrong.
    """
    if explicit is not None:
        return cwd / expand_home(explicit, environ)
    if named := environ.get(CONFIG_VARIABLE):
        return cwd / expand_home(Path(named), environ)
    own = _xdg(environ, "XDG_CONFIG_HOME", ".config") / "claudomator" / FILE_NAME
    return next((path for path in (cwd / FILE_NAME, own, _SYSTEM) if path.is_file()), None)


def load_config(path: Path | None, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> LoadedConfig:
    """The settings in that file, or the defaults without one. Raises ConfigError.

    Relative paths are under the file's folder (without a file: under cwd), and ``~`` is the user's home.
    """
    variables = os.environ if environ is None else environ
    here = Path.cwd() if cwd is None else cwd
    if path is None:
        return LoadedConfig(_resolved(Settings(), here, variables), None, here)
    path = here / path
    parsed = _read(path)
    if isinstance(parsed, list):
        raise ConfigError(path, parsed)
    return LoadedConfig(_resolved(parsed, path.parent, variables), path, path.parent)


def resolve_state_dir(flag: Path | None, settings: Settings, environ: Mapping[str, str], base_dir: Path) -> Path:
    """The state folder, absolute: the flag (under the working directory), the settings, ``$STATE_DIRECTORY``, XDG."""
    if flag is not None:
        return Path.cwd() / expand_home(flag, environ)
    if settings.state_dir is not None:
        return base_dir / expand_home(Path(settings.state_dir), environ)
    # systemd lists several, separated by colons, for a unit with several state directories.
    if given := environ.get("STATE_DIRECTORY", "").split(":")[0]:
        return base_dir / given
    return _xdg(environ, "XDG_STATE_HOME", ".local/state") / "claudomator"


def is_users_own(path: Path, uid: int | None = None) -> bool:
    """Whether only this user (or root) can have written the file: else no URL and no token may be taken from it."""
    owner = os.geteuid() if uid is None else uid
    try:
        statuses = (path.lstat(), path.stat())
    except OSError:
        return False
    own = all(status.st_uid in (owner, 0) for status in statuses)
    return own and stat.S_ISREG(statuses[1].st_mode) and not statuses[1].st_mode & stat.S_IWOTH


def expand_home(path: Path, environ: Mapping[str, str]) -> Path:
    """The path with a leading ``~`` as the user's home."""
    return _home(environ).joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """The folder that the variable names; a relative one is to be ignored, says the XDG specification."""
    given = Path(environ.get(variable, ""))
    return given if given.is_absolute() else _home(environ) / default


def _read(path: Path) -> Settings | list[Problem]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return [Problem(message=f"cannot be read: {reason}", remedy="name another with --config, or correct this one")]
    try:
        documents = read_documents(decode(data))
    except BadText as bad:
        return [bad.problem]
    if not documents:
        return Settings()
    first = documents[0]
    if len(documents) > 1:
        line = documents[1].lines.get(())
        return [Problem(line=line, message="is a second document", remedy="write the configuration as one")]
    if not isinstance(first.value, dict):
        message = f"{described(first.value)}, but a configuration is a mapping"
        return [Problem(line=first.lines.get(()), message=message, remedy="write `key: value` lines")]
    parsed = parse_settings(first.value, first.lines)
    if not isinstance(parsed, Settings):
        return parsed
    problem = zone_problem(parsed.budget.timezone, first.lines, ("budget", "timezone"))
    return parsed if problem is None else [problem]


def _resolved(settings: Settings, base: Path, environ: Mapping[str, str]) -> Settings:
    """The settings with every path absolute."""

    def absolute(text: str) -> str:
        return os.path.normpath(base / expand_home(Path(text), environ))

    def with_program(agent: AgentSpec) -> AgentSpec:
        if not agent.command or "/" not in agent.command[0]:
            return agent
        return agent.model_copy(update={"command": (absolute(agent.command[0]), *agent.command[1:])})

    changes = {
        "inbox": settings.inbox.model_copy(update={"paths": tuple(map(absolute, settings.inbox.paths))}),
        "routing": settings.routing.model_copy(
            update={"specialists": tuple(map(absolute, settings.routing.specialists))}
        ),
        "state_dir": None if settings.state_dir is None else absolute(settings.state_dir),
        "workdir_roots": tuple(map(absolute, settings.workdir_roots)),
        "agents": {name: with_program(agent) for name, agent in settings.agents.items()},
    }
    return settings.model_copy(update=changes)
