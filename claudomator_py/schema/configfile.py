"""The configuration: a file or a mapping becomes settings, or problems with it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.errors import Lines, Problem, shown, suggestion
from claudomator_py.domain.fields import TextUse
from claudomator_py.schema.agent_settings import KNOWN_KINDS, AgentEntry, parse_agents
from claudomator_py.schema.concurrency import host_problems, share_problems
from claudomator_py.schema.configpath import config_bytes, digest_of, expand_home, state_folder
from claudomator_py.schema.documents import EVERY_USE, beside, misread, refusal_of
from claudomator_py.schema.settings import Classifier, Settings, SettingsKeys
from claudomator_py.schema.validation import described, key_suggestion, problem_at, validate, value_problems
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, decode, read_documents
from claudomator_py.schema.zones import zone_problem
from claudomator_py.values import dataclass


class ConfigError(Exception):
    """The configuration cannot be used. The message has one line per problem: file, line, field, remedy."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(problem.render(str(path)) for problem in problems))
        self.path = path
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """Settings with absolute paths. path: the file they come from, if any. base_dir: base of relative paths. digest:
    see ``configpath.digest_of``; None without a file."""

    settings: Settings
    path: Path | None
    base_dir: Path
    digest: str | None = None

    def is_outdated(self) -> bool:
        """Return whether the file has changed since; False if it cannot be read."""
        try:
            return self.path is not None and digest_of(config_bytes(self.path)) != self.digest
        except OSError:
            return False


def load_config(path: Path | None, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> LoadedConfig:
    """Return the settings in that file, or the defaults without one. Raises ConfigError. Relative paths are relative to
    the file's folder (without a file: to cwd), and ``~`` is the user's home."""
    variables = os.environ if environ is None else environ
    here = Path.cwd() if cwd is None else cwd
    if path is None:
        return LoadedConfig(_resolved(Settings(), here, variables), None, here)
    path = here / path
    try:
        data = config_bytes(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "name another with --config, or correct this one"
        raise ConfigError(path, [Problem(message=f"cannot be read: {reason}", remedy=remedy)]) from error
    parsed = _read(data)
    if isinstance(parsed, list):
        raise ConfigError(path, parsed)
    return LoadedConfig(_resolved(parsed, path.parent, variables), path, path.parent, digest_of(data))


def resolve_state_dir(flag: Path | None, settings: Settings, environ: Mapping[str, str], base_dir: Path) -> Path:
    """Return the state folder as an absolute path; see ``configpath.state_folder``."""
    configured = None if settings.state_dir is None else Path(settings.state_dir)
    return state_folder(flag, configured, environ, base_dir)


def _read(data: bytes) -> Settings | list[Problem]:
    try:
        documents = read_documents(decode(data))
    except BadText as bad:
        of_agent = bad.path[:1] == ("agents",)
        return [refusal_of(bad, AgentEntry, prefix=bad.path[:2]) if of_agent else refusal_of(bad, Settings)]
    if not documents:
        return Settings()
    first = documents[0]
    if len(documents) > 1:
        line = documents[1].lines.get(())
        return [Problem(line=line, message="is a second document", remedy="write the configuration as one")]
    if not isinstance(first.value, dict):
        message = f"{described(first.value)}, but a configuration is a mapping"
        return [Problem(line=first.lines.get(()), message=message, remedy="write `key: value` lines")]
    parsed = beside(_misread(first), parse_settings(first.value, first.lines))
    if not isinstance(parsed, Settings):
        return parsed
    zones: list[tuple[str | None, tuple[str | int, ...]]]
    zones = [(parsed.budget.timezone, ("budget",)), (parsed.report.timezone, ("report",))]
    zones += [
        (reserve.timezone, ("balancing", "reserve", place)) for place, reserve in enumerate(parsed.balancing.reserve)
    ]
    problems = [zone_problem(zone, first.lines, (*path, "timezone")) for zone, path in zones]
    return [problem for problem in problems if problem is not None] or parsed


def parse_settings(mapping: Mapping[str, object], lines: Lines | None = None) -> Settings | list[Problem]:
    """Return the settings that the mapping describes, or everything wrong with it. Paths stay as written."""
    where = lines or {}
    # Odd values in agents are reported by `parse_agents`, which knows what their fields accept.
    if problems := value_problems({**mapping, "agents": None}, where, model=Settings):
        return problems
    known = {*SettingsKeys.model_fields, "agents"}
    fields: dict[str, object] = {}
    for key, value in mapping.items():
        if key not in known:
            problems.append(problem_at(where, (key,), "is not a known key", key_suggestion(key, known)))
        elif key != "agents":
            fields[key] = value
    agents = parse_agents(mapping["agents"], where) if "agents" in mapping else {}
    parsed = validate(SettingsKeys, fields, where)
    problems += agents if isinstance(agents, list) else []
    problems += parsed if isinstance(parsed, list) else []
    if problems or isinstance(agents, list) or isinstance(parsed, list):
        return sorted(problems, key=lambda problem: problem.line or 0)
    if problems := share_problems(parsed.concurrency, where) or host_problems(
        parsed.hosts, agents, parsed.policy, where
    ):
        return problems
    keys = {name: getattr(parsed, name) for name in SettingsKeys.model_fields}
    if "agents" in mapping:
        if problem := _account_problem(parsed.classifier, agents.values(), where):
            return [problem]
        if problems := _unknown_agents(parsed, agents, where):
            return problems
    return Settings(**keys, agents=agents, agents_configured="agents" in mapping, reach_configured="reach" in mapping)


def _account_problem(classifier: Classifier, agents: Iterable[AgentSpec], lines: Lines) -> Problem | None:
    """A problem if no agent has the classifier's account, which would then be shared with nobody."""
    known = {f"{agent.kind}/{agent.quota_account}" for agent in agents}
    if classifier.account is None or classifier.account in known:
        return None
    message = f"no agent has the account `{shown(classifier.account)}`"
    return problem_at(lines, ("classifier", "account"), message, suggestion(classifier.account, known))


def _unknown_agents(keys: SettingsKeys, agents: Iterable[str], lines: Lines) -> list[Problem]:
    """Agents named by a rule or a reserve that are not configured: a task allowed only on these would wait forever, and
    excluding one would have no effect."""
    known = {*agents, *KNOWN_KINDS}
    named: list[tuple[tuple[str | int, ...], str]] = [
        (("policy", place, key), name)
        for place, rule in enumerate(keys.policy)
        for key, names in (("agents", rule.agents), ("exclude_agents", rule.exclude_agents))
        for name in names
    ]
    named += [
        (("balancing", "reserve", place, "agents"), name)
        for place, reserve in enumerate(keys.balancing.reserve)
        for name in reserve.agents
    ]
    return [
        problem_at(lines, path, f"no agent or kind `{shown(name)}` is configured", suggestion(name, known))
        for path, name in named
        if name not in known
    ]


def _misread(document: Document) -> list[Problem]:
    """Commands and sentences that YAML cut off. Labels are mere words here, and settings files contain comments."""
    uses = EVERY_USE - {TextUse.LABEL}
    problems = misread(Settings, document, uses=uses)
    for path in {path[:2] for path in document.comments if path[:1] == ("agents",)}:
        problems += misread(AgentEntry, document, prefix=path, uses=uses)
    return problems


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
        "shadow": None if settings.shadow is None else absolute(settings.shadow),
        "state_dir": None if settings.state_dir is None else absolute(settings.state_dir),
        "workdir_roots": tuple(map(absolute, settings.workdir_roots)),
        "agents": {name: with_program(agent) for name, agent in settings.agents.items()},
    }
    return settings.model_copy(update=changes)
