"""What agents are given and their output is not to show: the values are known, so they are found anywhere."""

import re
from collections.abc import Iterable, Mapping

from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.redact import Redactor
from claudomator_py.service.registry import AgentRegistry

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|AUTH|DSN", re.IGNORECASE)
# A path, a number or the bare address of a service: shown everywhere, and known to everybody.
_PLAIN_VALUE = re.compile(r"/[^\n]*|[\d.,:]+|https?://[^/@?#\s]+(?:/v\d+\w*)?/?")


class Secrets:
    """Values that are taken out of what runs wrote. Safe to use from any thread.

    environ: the daemon's own. own: secrets of the daemon itself, such as the operator's token.
    """

    def __init__(self, registry: AgentRegistry, environ: Mapping[str, str], own: Iterable[str] = ()) -> None:
        self._registry = registry
        self._environ = dict(environ)
        self._own = tuple(own)

    def redactor(self, task_env: Mapping[str, str]) -> Redactor:
        """What finds them: all that are handed on to any agent, and those that the task brings itself."""
        values = {*self._own, *_named_secret(self._environ), *_named_secret(task_env)}
        for agent in self._registry.agents:
            values |= self._of_agent(agent)
        return Redactor(sorted(values))

    def _of_agent(self, agent: AgentSpec) -> set[str]:
        passed = {self._environ[name] for name in agent.pass_env if name in self._environ}
        return {value for value in passed if not _PLAIN_VALUE.fullmatch(value)} | _named_secret(agent.env)


def _named_secret(environ: Mapping[str, str]) -> set[str]:
    return {value for name, value in environ.items() if _SECRET_NAME.search(name) and not _PLAIN_VALUE.fullmatch(value)}
