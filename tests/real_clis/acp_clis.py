"""The real agent CLIs over the Agent Client Protocol, each told to talk to a fake of its service."""

import json
from typing import ClassVar

from tests.fakes import gemini_api, responses_api
from tests.fakes.http_api import Refusal, ToolCall
from tests.fakes.responses_api import ResponsesApi
from tests.real_clis.clis import Cli, CopilotCli, GeminiCli, Opencode, QwenCode


class OverAcp(Cli):
    """What they have in common."""

    start_s = 60
    counts = True
    """Whether it tells tokens."""
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


ACP_CLIS: tuple[OverAcp, ...] = (GeminiAcp(), OpencodeAcp(), QwenAcp(), CopilotAcp(), CodexAcp())
