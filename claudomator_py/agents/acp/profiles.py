"""What is known of each agent that speaks ACP, by ``profiles.toml``, read once."""

import pkgutil
import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from claudomator_py.domain.kind import LoginFile
from claudomator_py.values import regex

GENERIC = "generic"
_VERSION = regex(r"(?<=.)@[\w.^~-]+\Z")
_RUNNERS = frozenset({"npx", "uvx", "bunx", "pipx", "node", "env", "sh", "run", "-y", "--yes"})


class AcpProfile(BaseModel):
    """One agent. All that is left out is as for an agent that nothing is known of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    programs: tuple[str, ...] = ()
    """Names of its program, and of packages that a runner such as ``npx`` starts it from."""
    command: tuple[str, ...] = ()
    install: str = ""
    login: str = ""
    """How a person logs in."""
    keys: tuple[str, ...] = ()
    """Variables with a key or a token, any of which will do."""
    login_files: tuple[LoginFile, ...] = ()
    """Where it keeps what a person logged in with."""
    tried: str = ""
    """The package and version that it was tried with; empty: all of this is from its documentation."""
    note: str = ""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Variables that its program is started with."""
    modes: Mapping[str, str] = Field(default_factory=dict)
    """Its names for the modes ``ask``, ``edits``, ``plan`` and ``all``."""
    options: Mapping[str, str] = Field(default_factory=dict)
    asks: bool = True
    """Whether it asks for leave at all."""
    fences: bool = False
    """Whether, in its asking mode, it asks before each command that does more than look: then a reach is kept."""
    usage: Literal["unknown", "turn", "last_call", "process", "session", "chunk", "gemini", "file", "none"] = "unknown"
    """What the numbers at a turn's end mean; ``file``: there are none, but the session's are in ``usage_file``."""
    usage_file: Mapping[Literal["path", "input", "output"], str] = Field(default_factory=dict)
    """A JSON document below the home, by the session's id, and where in it the sums of the session are."""
    dollars: bool = False
    tells: bool = False
    """Whether every turn that went well tells numbers."""
    mute: bool = False
    """Whether it says nothing at all where its service fails."""
    resumes: bool = True
    load_waits: bool = False
    mcp: Literal["stdio", "http", "none"] = "stdio"
    model_by: Literal["offered", "unchecked"] = "offered"
    patience_s: float = 8.0
    noise: tuple[str, ...] = ()
    """Patterns of whole pieces of a message that its program says, and no model."""
    error_text: tuple[str, ...] = ()
    """Patterns of whole pieces of a message that are an error, put as if its model had said it."""
    kinds: Mapping[str, str] = Field(default_factory=dict)
    codes: Mapping[str, str] = Field(default_factory=dict)
    """Reasons by the codes of its errors."""

    @property
    def is_tried(self) -> bool:
        """Whether its program itself was tried."""
        return bool(self.tried)


@cache
def profiles() -> Mapping[str, AcpProfile]:
    """Return all of them, by name."""
    text = (pkgutil.get_data("claudomator_py.agents.acp", "profiles.toml") or b"").decode()
    found = tomllib.loads(text)
    return MappingProxyType({name: AcpProfile(name=name, **fields) for name, fields in found.items()})


def profile_of(command: tuple[str, ...]) -> AcpProfile:
    """Return the profile of the agent that the command starts: by its program, or the package that a runner starts it
    from."""
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
    """Return the profile of that name; of one that there is not, what is right for any agent."""
    return profiles().get(name or "") or profiles()[GENERIC]
