"""Whether a valid task could run at all: its agent, directory and time zone. Checked before the task is accepted.

Things that are only needed when the task starts (folders, a repository, the programs that its check certainly runs)
cause a warning, not a refusal: another task, or the agent itself, may create them in time.
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from claudomator_py.acts.catalogue import catalogue
from claudomator_py.acts.shell import parse
from claudomator_py.acts.shell_tree import Pipeline, SimpleCommand, Word
from claudomator_py.acts.wrapped import inner_words
from claudomator_py.domain.agent import BY_NAME_KINDS, AgentSpec
from claudomator_py.domain.card import Transport
from claudomator_py.domain.command_line import BUILTINS, RESERVED_WORDS, SHELLS
from claudomator_py.domain.errors import Problem, printable, shown, suggestion
from claudomator_py.domain.host import LOCAL
from claudomator_py.domain.run import ExitRecord
from claudomator_py.domain.task import Permissions, TaskSpec
from claudomator_py.domain.worktree import Isolation
from claudomator_py.environment.registry import AgentRegistry
from claudomator_py.environment.workdirs import Workdirs, directory_key, resolve
from claudomator_py.schema.agent_settings import MODEL_KINDS
from claudomator_py.schema.known_secrets import secrets_in
from claudomator_py.schema.zones import zone_problem
from claudomator_py.values import regex

_MAX_DEPTH = 8
_MAY_BE_PASSED_OVER = regex(r"\|\||\b(?:if|while|until|for|case|function|trap|alias)\b")
"""Shell syntax after which commands may not run, or others may run instead."""
_SETS_UP = frozenset({".", "source", "eval", "exec", "hash", "return", "exit"})
"""After these, PATH may contain anything, or nothing runs at all."""
_NOT_SURE = frozenset(
    {"xargs", "parallel", "entr", "script", "watch", "systemd-run", "nsenter", "unshare", "sudo", "doas"}
)
"""Programs that run others elsewhere, or take them from somewhere other than an argument."""
_OWN = ("-i", "-", "-S", "--split-string", "--ignore-environment", "-C", "--chdir")
"""Options of ``env`` that change where programs are found."""
_NAMED_OPTION = regex(r"[-+][A-Za-z]*[oO]")
_VARIABLE = regex(r"[A-Za-z_]\w*=")


def programs_of(words: Sequence[str], depth: int = 0) -> Iterator[str]:
    """Return the programs that a command with these words runs, as far as its text makes that certain."""
    if not words or depth > _MAX_DEPTH:
        return
    program, behind = words[0], list(words[1:])
    yield program
    name = program.rpartition("/")[2]
    if name in SHELLS:
        if (text := _text_of(behind)) is not None:
            yield from _in_text(text, depth)
    elif name in _NOT_SURE or (name == "env" and any(word.partition("=")[0] in _OWN for word in behind)):
        return
    elif (wrapper := catalogue().wrappers.get(name)) is not None and name not in BUILTINS:
        inner = inner_words(name, wrapper, behind, None)
        while name == "env" and inner and _VARIABLE.match(inner[0]):
            if inner[0].startswith("PATH="):
                return
            inner = inner[1:]
        yield from programs_of(inner, depth + 1)


def _text_of(words: Sequence[str]) -> str | None:
    """The text that a shell with these arguments runs; None for a script or standard input."""
    is_text = is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith(("-", "+")) and word != "-":
            is_text = is_text or (not word.startswith("--") and word.startswith("-") and "c" in word)
            is_value = word in ("--rcfile", "--init-file") or _NAMED_OPTION.fullmatch(word) is not None
        else:
            return word if is_text else None
    return None


def _in_text(text: str, depth: int) -> Iterator[str]:
    if _MAY_BE_PASSED_OVER.search(text):
        return
    moved = False
    for node in parse(text):
        stages = node.stages if isinstance(node, Pipeline) else (node,)
        for stage in stages:
            if not isinstance(stage, SimpleCommand):
                return
            words = [_plain(word) for word in stage.words]
            begins = [str(word[0]) for word in stage.words if word]
            sets_path = any(variable == "PATH" for variable, _ in stage.assignments)
            if sets_path or any(word.startswith("PATH=") for word in begins) or (words and words[0] in _SETS_UP):
                return
            if not words or words[0] is None:
                continue
            moved = moved or words[0] in ("cd", "pushd", "popd")
            if words[0] in BUILTINS | RESERVED_WORDS:
                continue
            known = [word if word is not None else "\0" for word in words]
            for program in programs_of(known, depth + 1):
                if "\0" not in program and not (moved and "/" in program and not program.startswith("/")):
                    yield program


def _plain(word: Word) -> str | None:
    """The word as text; None if its value is known only at run time."""
    return "".join(part for part in word if isinstance(part, str)) if all(isinstance(p, str) for p in word) else None


_REMOTE = frozenset(transport.value for transport in Transport if transport is not Transport.LOCAL)
"""Name prefixes of agents that are remote specialists, see ``routing.role.agent_name``."""

_NOT_EXECUTED = frozenset({126, 127})
"""What a shell exits with, and ``env`` and the like, if a program cannot be executed or is not found."""


def placement_problems(spec: TaskSpec, registry: AgentRegistry, workdirs: Workdirs) -> list[Problem]:
    """Return the reasons why the task could never run as requested."""
    problems = []
    if spec.working_dir is not None and (problem := workdirs.problem(spec.working_dir)):
        problems.append(problem)
    for place, folder in enumerate(spec.add_dirs):
        if (problem := workdirs.problem(folder, f"add_dirs[{place}]")) is not None:
            problems.append(problem)
    if spec.agent.type is not None:
        problems += _agent_problems(spec, spec.agent.type, registry)
    hosts = {host for agent in registry.configured for host in agent.hosts}
    if spec.host is not None and hosts and spec.host not in (LOCAL, *hosts) and not problems:
        message = f"no agent runs on `{spec.host}`"
        problems.append(Problem(field="host", message=message, remedy=suggestion(spec.host, hosts)))
    return problems


def placement_warnings(spec: TaskSpec, registry: AgentRegistry) -> list[Problem]:
    """Return what the task asks for that no agent can give, although the task is accepted."""
    agent_type = spec.agent.type
    if agent_type is None or _insists(spec) or any(agent.goes_by(agent_type) for agent in registry.configured):
        return []
    consequence = ", so any other may take the task"
    if spec.agent.model is not None:
        consequence += f", with a model of its own instead of `{shown(spec.agent.model)}`"
    return [unknown_agent(agent_type, registry, consequence)]


def unknown_agent(agent_type: str, registry: AgentRegistry, consequence: str = "") -> Problem:
    """Return the problem that no such agent is configured. consequence: what follows from it, as the message's end."""
    message = f"no agent `{shown(agent_type)}` is configured{consequence}"
    return Problem(field="agent.type", message=message, remedy=_remedy(agent_type, registry))


def open_to(spec: TaskSpec, agents: Collection[AgentSpec]) -> list[AgentSpec]:
    """Return the agents that may be given the task: the one it insists on, else the agents it names and all that are
    open to balancing."""
    named = [agent for agent in agents if agent.goes_by(spec.agent.type)]
    if named and spec.agent.strict:
        return [agent for agent in named if agent.name == spec.agent.type] or named
    return [agent for agent in agents if agent.auto_select or agent in named]


def acceptance_warnings(spec: TaskSpec, registry: AgentRegistry) -> list[Problem]:
    """Return warnings about a task that is accepted anyway."""
    return [
        *placement_warnings(spec, registry),
        *standing_warnings(spec),
        *_permission_warnings(spec, registry),
        *_secret_warnings(spec),
        *_tree_warnings(spec),
    ]


def _tree_warnings(spec: TaskSpec) -> list[Problem]:
    """Warn that a work tree can start from only one of several dependencies."""
    others = [name for name in spec.depends_on if name != spec.continues]
    if spec.isolation is not Isolation.WORKTREE or len(others) < 2 or spec.continues is not None or spec.base:
        return []
    message = (
        f"names {len(others)} tasks; the work tree starts from the one that contains the commits of the others' work "
        "trees, or, if none does, from what is checked out in the repository"
    )
    remedy = "name one of them as `base`, or have them merged first"
    return [Problem(field="depends_on", message=message, remedy=remedy)]


def _secret_warnings(spec: TaskSpec) -> list[Problem]:
    """Warn of secrets in ``env``: everybody who can read the inbox sees them, and the database stores them."""
    message = "looks like a secret, and task files and the database keep it as it is"
    remedy = "set it for the daemon instead, and name it in `pass_env` of the agent"
    return [
        Problem(field=f"env.{name}", message=message, remedy=remedy)
        for name, value in spec.env.items()
        if secrets_in({name: value})
    ]


def _permission_warnings(spec: TaskSpec, registry: AgentRegistry) -> list[Problem]:
    """Warn of a task with no permissions in a directory of its own or of the task that it continues: it would fail
    unattended."""
    nowhere = spec.working_dir is None and spec.continues is None
    if nowhere or spec.permissions != Permissions() or spec.approval:
        return []
    able = [agent for agent in registry.configured if agent.auto_select]
    wished = [agent for agent in registry.configured if agent.goes_by(spec.agent.type)]
    if not any(agent.kind in MODEL_KINDS for agent in wished or able):
        return []
    own = "" if spec.continues is None else f", and those of {spec.continues} are not taken over"
    message = f"are not set{own}, so most agents may only read in the directory, and nobody is there to approve more"
    remedy = "write permissions: {mode: acceptEdits}, or name the tools in permissions.allowed_tools"
    return [Problem(field="permissions", message=message, remedy=remedy)]


def zone_problems(spec: TaskSpec) -> list[Problem]:
    """Return the problem with the schedule's time zone, if any."""
    problem = zone_problem(spec.timezone, {}, ("timezone",))
    return [] if problem is None else [problem]


def _agent_problems(spec: TaskSpec, agent_type: str, registry: AgentRegistry) -> list[Problem]:
    named = [agent for agent in registry.configured if agent.goes_by(agent_type)]
    if not named:
        if not _insists(spec):
            return []
        return [unknown_agent(agent_type, registry, ", and the task insists on it")]
    bound = [agent for agent in named if agent.name == agent_type] or named
    must = spec.agent.strict or not any(agent.auto_select for agent in bound)
    lacking = registry.unsupported(spec, bound[0]) if must else []
    remedy = "leave it out, or choose another agent"
    return [Problem(field="agent.type", message=sentence, remedy=remedy) for sentence in lacking]


def _insists(spec: TaskSpec) -> bool:
    """Return whether only agents that ``agent.type`` means may do the task. Kinds that must be named always insist."""
    return spec.agent.strict or spec.agent.type in BY_NAME_KINDS


def _remedy(agent_type: str, registry: AgentRegistry) -> str:
    """Return the remedy for an unknown agent: correct its name, or configure it."""
    of, _, specialist = agent_type.partition(":")
    if specialist and of in _REMOTE:
        # The same text whether or not the specialist exists, as the caller may not be allowed to see it.
        return f"write `specialist: {shown(specialist)}` instead"
    if agent_type in registry.kinds:
        return f"configure or install {agent_type}, or leave it out"
    # A simulated agent that only tasks naming it get would do nothing: it is no remedy for a typing error.
    open_agents = (agent for agent in registry.configured if agent.kind != "simulated" or agent.auto_select)
    return suggestion(agent_type, [agent.name for agent in open_agents])


def standing_warnings(spec: TaskSpec) -> list[Problem]:
    """Return what the task would fail at if it started now, as far as the file system tells."""
    return [*_folder_warnings(spec), *_check_warnings(spec)]


def _folder_warnings(spec: TaskSpec) -> Iterator[Problem]:
    folders = [("working_dir", spec.working_dir)] if spec.working_dir is not None else []
    folders += [(f"add_dirs[{place}]", folder) for place, folder in enumerate(spec.add_dirs)]
    for field, folder in folders:
        if (problem := _folder_problem(folder)) is not None:
            message, remedy = problem
            if field != "working_dir":
                message = message.replace("the task would fail", "its agent could not use it")
            yield Problem(field=field, message=f"{printable(folder)} {message}", remedy=remedy)
    isolated = spec.isolated_dir
    if isolated is not None and (missing := _missing_of_repository(isolated)) is not None:
        why, first = missing
        message = f"needs a git repository with a commit, and {printable(isolated)} {why}; the task would fail"
        yield Problem(field="isolation", message=message, remedy=f"{first}, or write isolation: none")


def _folder_problem(folder: str) -> tuple[str, str] | None:
    """Return what is wrong with a folder, to follow its name, and the remedy."""
    path = Path(folder).expanduser()
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist; the task would fail", "create it before the task starts, or correct it"
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"cannot be examined: {why}", "choose a folder that the daemon can reach"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a folder; the task would fail", "name the folder that it lies in"
    if not os.access(path, os.R_OK | os.X_OK):
        return "may not be read; the task would fail", f"give the user with id {os.geteuid()} the rights r and x on it"
    return None


def _missing_of_repository(folder: str) -> tuple[str, str] | None:
    """Return what keeps git from making a work tree of the folder, and the remedy. None for a missing folder."""
    try:
        place = resolve(folder)
        if not place.is_dir():
            return None
        if any(_is_git_directory(Path(each)) for each in (place, *place.parents)):
            return "is a bare one, or the inside of one", "name a work tree or a clone of it"
        git = Path(directory_key(folder)) / ".git"
        if not git.exists():
            return "is in none", "run `git init` there and commit"
        if git.is_file() and _is_bare(git.parent / git.read_text().strip().removeprefix("gitdir: ")):
            return "only leads to a bare one", "name a work tree or a clone of it"
        return ("is in one that has no commit", "commit there") if git.is_dir() and _is_unborn(git) else None
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None


def _is_git_directory(folder: Path) -> bool:
    """Return whether the folder is a bare repository or a ``.git`` directory."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


_BARE = regex(r"(?im)^\s*bare\s*=\s*true\s*$")


def _is_bare(git_dir: Path) -> bool:
    """Return whether the git directory, to which a ``.git`` file leads, has no work tree of its own, judged by its
    configuration. Raises OSError."""
    files = (git_dir / name for name in ("config", "config.worktree"))
    return _is_git_directory(git_dir) and any(_BARE.search(file.read_text()) for file in files if file.is_file())


def _is_unborn(git: Path) -> bool:
    """Return whether HEAD is a branch without a commit, judged by the files of the repository. Raises OSError."""
    ref = (git / "HEAD").read_text().strip().removeprefix("ref: ")
    packed = git / "packed-refs"
    if (git / "reftable").exists() or not ref.startswith("refs/") or (git / ref).exists():
        return False
    return not packed.exists() or f" {ref}\n" not in packed.read_text()


def _check_warnings(spec: TaskSpec) -> Iterator[Problem]:
    for place, command in enumerate(spec.check):
        missing = ((program, where) for program in programs_of(command) if (where := _missing(program, spec)))
        if (name := next(missing, None)) is None:
            continue
        program, where = name
        remedy = "install it, or correct the command"
        if "/" not in program:
            message = f"there is no program `{printable(program)}` on PATH"
            message += "" if program == command[0] else ", and the check runs it"
        elif Path(where).is_file():
            message, remedy = f"{printable(program)} cannot be executed", f"run `chmod +x` on it, or write sh {program}"
        else:
            message, remedy = f"there is no {printable(program)}", "add it before the task ends, or correct the command"
        yield Problem(field=f"check[{place}]", message=f"{message}; the check would fail", remedy=remedy)


def unavailable_program(command: Sequence[str], spec: TaskSpec, record: ExitRecord) -> str | None:
    """Return the program for lack of which the check's command ended so. None if the cause is another, or if the agent
    could have made the program: in the task's directory, or anywhere on a PATH that the task sets itself."""
    if record.ended_by is not None or (record.error is None and record.exit_code not in _NOT_EXECUTED):
        return None
    folder = None if spec.working_dir is None else Path(spec.working_dir).expanduser()
    for program in programs_of(command):
        if "/" not in program:
            if "PATH" in spec.env:
                continue
        elif not program.startswith("/") or (folder is not None and Path(program).is_relative_to(folder)):
            continue
        if (record.error is not None and program == command[0]) or _missing(program, spec) is not None:
            return program
    return None


def _missing(program: str, spec: TaskSpec) -> str | None:
    """Return the path or name under which the program is not found, or None if it is found or cannot be judged."""
    where = _place_of(program, spec)
    return None if where is None or shutil.which(where, path=spec.env.get("PATH")) is not None else where


def _place_of(program: str, spec: TaskSpec) -> str | None:
    """Return the path or name to look up, or None for a relative path if the folder does not exist yet."""
    if "/" not in program or program.startswith("/"):
        return program
    if spec.working_dir is None or _folder_problem(spec.working_dir) is not None:
        return None
    return str(Path(spec.working_dir).expanduser() / program)
