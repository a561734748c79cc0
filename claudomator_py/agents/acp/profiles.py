"""What is known about each ACP agent, from ``profiles.toml``, which is read once."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, Field

from claudomator_py.domain.kind import CommandFiles, LoginFile
from claudomator_py.values import regex, toml_data

GENERIC = "generic"
_VERSION = regex(r"(?<=.)@[\w.^~-]+\Z")
_RUNNERS = frozenset({"npx", "uvx", "bunx", "pipx", "node", "env", "sh", "run", "-y", "--yes"})


class AcpProfile(BaseModel, frozen=True, extra="forbid"):
    """One agent. The defaults are for an agent that nothing is known about."""

    name: str
    title: str
    programs: tuple[str, ...] = ()
    """Names of its program, and of the packages that a runner such as ``npx`` starts."""
    command: tuple[str, ...] = ()
    install: str = ""
    login: str = ""
    """How a person logs in; empty: not known."""
    keys: tuple[str, ...] = ()
    """Environment variables with a key or a token; any one will do."""
    login_files: tuple[LoginFile, ...] = ()
    """Files that exist once a person has logged in."""
    commands: tuple[CommandFiles, ...] = ()
    """Where it looks for commands that a prompt may begin with."""
    tried: str = ""
    """The package and version that were tried; empty: everything here is from the agent's documentation."""
    note: str = ""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables that its program is started with."""
    modes: Mapping[str, str] = Field(default_factory=dict)
    """Its names for the modes ``ask``, ``edits``, ``plan`` and ``all``."""
    options: Mapping[str, str] = Field(default_factory=dict)
    asks: bool = True
    """Whether it asks for permission before it acts."""
    unasked: tuple[str, ...] = ()
    """Kinds of tools that it may use without asking, even in its asking mode."""
    turns_variable: str = ""
    """Environment variable that limits the requests to the model in a turn."""
    fences: bool = False
    """Whether its asking mode asks before every command that does more than read, so that a reach can be kept."""
    usage: Literal[
        "unknown", "turn", "last_call", "process", "session", "chunk", "gemini", "file", "journal", "none"
    ] = "unknown"
    """What the numbers at the end of a turn count. There are none if it is ``file`` (the session's are in
    ``usage_file``) or ``journal`` (the turn's are there)."""
    usage_file: Mapping[Literal["path", "input", "output"], str] = Field(default_factory=dict)
    """A JSON file below the home directory, named by the session's id, and the places of the session's totals in it."""
    journal: Mapping[str, Any] = Field(default_factory=dict)
    """What it writes down about a session, a JSON object a line: in which folder below the home, the variable that
    moves that folder, and patterns of the files with the session's own lines (``main``) and with those of its
    subagents as well (``lines``). Then places, each the ``type`` of a line and a dotted path in it: of the error of
    the last request (``error``), of the reason to send it again (``retry``), of tokens, of a piece of an answer
    (``text``), and of why an answer ended (``stop``; ``stops`` has stop reasons of ACP by its words for a turn's
    end)."""
    dollars: bool = False
    tells: bool = False
    """Whether every successful turn reports numbers."""
    mute: bool = False
    """Whether it says nothing at all when its service fails."""
    resumes: bool = True
    load_waits: bool = False
    mcp: Literal["stdio", "http", "none"] = "stdio"
    model_by: Literal["offered", "unchecked"] = "offered"
    patience_s: float = 8.0
    noise: tuple[str, ...] = ()
    """Patterns of whole message chunks that come from the program, not from a model."""
    error_text: tuple[str, ...] = ()
    """Patterns of whole message chunks that are errors, sent as if the model had said them. A group is the message."""
    kinds: Mapping[str, str] = Field(default_factory=dict)
    given_as_text: bool = False
    """Whether the content of a call is its arguments, as JSON, until it runs."""
    codes: Mapping[str, str] = Field(default_factory=dict)
    """Reasons by error code."""


@cache
def profiles() -> Mapping[str, AcpProfile]:
    """Return all profiles by name."""
    profiles = toml_data("claudomator_py.agents.acp", "profiles.toml")
    return MappingProxyType({name: AcpProfile(name=name, **fields) for name, fields in profiles.items()})


def profile_of(command: tuple[str, ...]) -> AcpProfile:
    """Return the profile of the agent that the command starts, by its program or the package that a runner starts; the
    generic one if none fits."""
    for word in command:
        base = word if word.startswith("@") else word.rpartition("/")[2]
        base = _VERSION.sub("", base).removesuffix(".js")
        for profile in profiles().values():
            if base in profile.programs:
                return profile
        if base not in _RUNNERS and not word.startswith("-") and "=" not in word:
            break
    return profiles()[GENERIC]


def named(name: str | None) -> AcpProfile:
    """Return the profile of that name; the generic one if there is none."""
    return profiles().get(name or "") or profiles()[GENERIC]
