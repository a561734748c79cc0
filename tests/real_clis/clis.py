"""The real agent CLIs: where each is, how it is told to talk to a fake of its service, and what that fake can say.

Nothing leaves the machine: keys are fake, and what is not for loopback goes to a proxy that is not there.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from claudomator_py.agents.gemini import kind as gemini_kind
from claudomator_py.domain.agent import AgentSpec
from tests.fakes import chat_api, gemini_api, messages_api, responses_api
from tests.fakes.chat_api import ChatApi
from tests.fakes.gemini_api import GeminiApi
from tests.fakes.http_api import INPUT_TOKENS, OUTPUT_TOKENS, Refusal, ScriptedApi, ToolCall
from tests.fakes.messages_api import MessagesApi
from tests.fakes.responses_api import ResponsesApi

INSTALLED = Path(__file__).parents[2] / "build" / "clis"
NOBODY = "http://127.0.0.1:9"
OPENCODE_PRICE = {"input": 1, "output": 4}


class Cli(ABC):
    """One of them.

    key: the variables with its key. files: JSON documents that it needs in its home, by path. models: by tier, None for
    the kind's own. start_s: seconds in which it has surely come to its first tool. commands: the permissions with which
    it runs any command.
    """

    kind: str
    package: str
    api: type[ScriptedApi]
    key: ClassVar[Mapping[str, str]]
    files: ClassVar[Mapping[str, object]] = {}
    models: ClassVar[Mapping[str, str] | None] = None
    commands: ClassVar[Mapping[str, object]] = {"mode": "bypassPermissions"}
    start_s = 20
    tells_dollars = False
    words: tuple[str, ...] = ()
    """With which its program is started before all others."""

    @property
    def agent_kind(self) -> str:
        """The kind of agent by which it is run."""
        return self.kind

    @property
    def program(self) -> Path:
        """Where it is, in a local npm install."""
        return INSTALLED / "node_modules" / ".bin" / self.kind

    @property
    def marks(self) -> list[pytest.MarkDecorator]:
        """What its tests are marked with."""
        how = f"make real-clis, or npm install --prefix {INSTALLED} {self.package}"
        skip = pytest.mark.skipif(not self.program.exists(), reason=f"{self.program} is not there: {how}")
        return [pytest.mark.real_clis, pytest.mark.timeout(900), skip]

    @property
    def trust_marks(self) -> list[pytest.MarkDecorator]:
        """What tests are marked with that need settings of ours."""
        return []

    def documents(self, origin: str) -> Mapping[str, object]:
        """Its ``files``, for the service there."""
        return self.files

    def settle_in(self, home: Path, origin: str = NOBODY) -> None:
        """Put its files into its home. origin: of the service, for those that name it."""
        for name, document in self.documents(origin).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(json.dumps(document))

    @abstractmethod
    def env(self, origin: str) -> dict[str, str]:
        """Its variables, without the key, for the service there."""

    def extra_args(self, origin: str) -> tuple[str, ...]:
        """Its further arguments, for the service there."""
        return ()

    @abstractmethod
    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        """The model has it write a file."""

    @abstractmethod
    def shell(self, command: str) -> ToolCall:
        """The model has it run a command."""

    @abstractmethod
    def overloaded(self) -> Refusal:
        """The service is at capacity."""

    @abstractmethod
    def unauthorized(self) -> Refusal:
        """The service refuses the key."""


class ClaudeCode(Cli):
    """Claude Code."""

    kind = "claude"
    package = "@anthropic-ai/claude-code"
    api = MessagesApi
    key: ClassVar = {"ANTHROPIC_API_KEY": "sk-ant-fake"}
    # It does not bypass permissions for root.
    commands: ClassVar = {"mode": "acceptEdits", "allowed_tools": ["Bash"]}
    login: ClassVar = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-fake"}
    tells_dollars = True

    def env(self, origin: str) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": origin, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        return ToolCall("Write", {"file_path": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("Bash", {"command": command, "description": "As asked", "timeout": 600_000})

    def overloaded(self) -> Refusal:
        return messages_api.overloaded()

    def unauthorized(self) -> Refusal:
        return messages_api.unauthorized()


class GeminiCli(Cli):
    """Gemini CLI, logged in with a key; two attempts at a request, where it would make ten."""

    kind = "gemini"
    package = "@google/gemini-cli"
    api = GeminiApi
    key: ClassVar = {"GEMINI_API_KEY": "fake"}
    files: ClassVar = {
        ".gemini/settings.json": {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"maxAttempts": 2},
        }
    }

    @property
    def trust_marks(self) -> list[pytest.MarkDecorator]:
        untrusted = gemini_kind.KIND.unfenced(AgentSpec(name=self.kind, kind=self.kind))
        reason = "Gemini CLI takes settings only from files that nobody but root can write: not those of this checkout"
        return [pytest.mark.skipif(untrusted is not None, reason=reason)]

    def env(self, origin: str) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": origin}

    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        return ToolCall("write_file", {"file_path": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("run_shell_command", {"command": command, "description": "as asked"})

    def overloaded(self) -> Refusal:
        return gemini_api.overloaded()

    def unauthorized(self) -> Refusal:
        return gemini_api.unauthorized()


class CodexCli(Cli):
    """Codex, with the key of a provider of its own."""

    kind = "codex"
    package = "@openai/codex"
    api = ResponsesApi
    key: ClassVar = {"FAKE_KEY": "sk-fake"}

    def env(self, origin: str) -> dict[str, str]:
        return {}

    def extra_args(self, origin: str) -> tuple[str, ...]:
        base_url = f'base_url="{origin}/v1"'
        provider = f'model_providers.fake={{name="fake",{base_url},wire_api="responses",env_key="FAKE_KEY"}}'
        return ("--config", 'model_provider="fake"', "--config", provider)

    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        return self.shell(f"printf '{text.encode('unicode_escape').decode()}' > {path}")

    def shell(self, command: str) -> ToolCall:
        return ToolCall("exec_command", {"cmd": command})

    def overloaded(self) -> Refusal:
        return responses_api.overloaded()

    def unauthorized(self) -> Refusal:
        return responses_api.unauthorized()


class Opencode(Cli):
    """opencode, with a provider of its own, and nothing to look for on the network."""

    kind = "opencode"
    package = "opencode-ai"
    api = ChatApi
    key: ClassVar = {"FAKE_KEY": "fake"}
    models: ClassVar = dict.fromkeys(("fast", "balanced", "powerful"), "fake/m1")
    start_s = 90
    tells_dollars = True

    def env(self, origin: str) -> dict[str, str]:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": f"{origin}/v1", "apiKey": "{env:FAKE_KEY}"},
            "models": {"m1": {"name": "M1", "limit": {"context": 100_000, "output": 8_000}, "cost": OPENCODE_PRICE}},
        }
        config = {"provider": {"fake": provider}, "share": "disabled"}
        return {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }

    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        return ToolCall("write", {"filePath": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("bash", {"command": command, "description": "as asked"})

    def overloaded(self) -> Refusal:
        return chat_api.overloaded()

    def unauthorized(self) -> Refusal:
        return chat_api.unauthorized()


class QwenCode(Cli):
    """Qwen Code, with the key of a service that speaks like OpenAI's. It sends all through a proxy, loopback too."""

    kind = "qwen"
    package = "@qwen-code/qwen-code"
    api = ChatApi
    key: ClassVar = {"OPENAI_API_KEY": "fake"}

    def env(self, origin: str) -> dict[str, str]:
        no_proxy = {"HTTPS_PROXY": "", "HTTP_PROXY": ""}
        return {"OPENAI_BASE_URL": f"{origin}/v1", "OPENAI_MODEL": "m1", **no_proxy}

    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        return ToolCall("write_file", {"file_path": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("run_shell_command", {"command": command, "description": "as asked", "is_background": False})

    def overloaded(self) -> Refusal:
        return chat_api.overloaded()

    def unauthorized(self) -> Refusal:
        return chat_api.unauthorized()


class CopilotCli(Cli):
    """GitHub Copilot CLI, with a provider of its own."""

    kind = "copilot"
    package = "@github/copilot"
    api = ChatApi
    key: ClassVar = {"COPILOT_PROVIDER_API_KEY": "sk-fake"}

    def env(self, origin: str) -> dict[str, str]:
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{origin}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_MODEL": "m1",
            "COPILOT_OFFLINE": "true",
        }

    def writes(self, path: Path, text: str = "hello\n") -> ToolCall:
        return ToolCall("create", {"path": str(path), "file_text": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("bash", {"command": command, "description": "as asked"})

    def overloaded(self) -> Refusal:
        return chat_api.overloaded()

    def unauthorized(self) -> Refusal:
        return chat_api.unauthorized()


CLAUDE = ClaudeCode()
GEMINI = GeminiCli()
CODEX = CodexCli()
OPENCODE = Opencode()
QWEN = QwenCode()
COPILOT = CopilotCli()
CLIS: tuple[Cli, ...] = (CLAUDE, GEMINI, CODEX, OPENCODE)
OPENCODE_STEP_USD = (INPUT_TOKENS * OPENCODE_PRICE["input"] + OUTPUT_TOKENS * OPENCODE_PRICE["output"]) / 1e6


def each(*clis: Cli, with_settings: bool = False) -> pytest.MarkDecorator:
    """Parametrises a test over these CLIs; all of them if none is named. with_settings: it needs settings of ours, for
    tools or a fence, and is skipped for a CLI that does not trust the files of this checkout."""
    results = {cli: [*cli.marks, *(cli.trust_marks if with_settings else ())] for cli in clis or CLIS}
    return pytest.mark.parametrize("cli", [pytest.param(cli, id=cli.kind, marks=results[cli]) for cli in results])


def bare(home: Path) -> dict[str, str]:
    """The environment of a CLI on a machine where nothing else is set."""
    system = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
    return {**system, **private(home)}


def private(home: Path) -> dict[str, str]:
    """The variables that keep it to its home and to loopback."""
    place = str(home)
    nowhere = {"HTTPS_PROXY": NOBODY, "HTTP_PROXY": NOBODY, "NO_PROXY": "127.0.0.1"}
    return {"HOME": place, "TMPDIR": place, **nowhere}
