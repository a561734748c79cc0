"""The environment of a run: bare but for what a program needs to run at all and what its configuration lets through."""

from collections.abc import Mapping

from claudomator_py.core.agent import AgentSpec
from claudomator_py.core.task import TaskSpec

BASE = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "LANG", "LANGUAGE"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
    | {"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"}
)
BASE_PREFIX = "LC_"


def environment(
    daemon: Mapping[str, str], agent: AgentSpec, task: TaskSpec, launch: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a run. Later ones win: base, passed on, the launch's, the agent's, the task's, our own."""
    return {**_base(daemon, agent), **launch, **agent.env, **task.env, **own}


def agent_environment(daemon: Mapping[str, str], agent: AgentSpec) -> dict[str, str]:
    """The variables of a program of the agent's that runs no task."""
    return {**_base(daemon, agent), **agent.env}


def _base(daemon: Mapping[str, str], agent: AgentSpec) -> dict[str, str]:
    """Anything else that the daemon has, proxies included, an agent gets by ``pass_env``."""
    base = {name: value for name, value in daemon.items() if name in BASE or name.startswith(BASE_PREFIX)}
    passed = {name: daemon[name] for name in agent.pass_env if name in daemon}
    return {**base, "TERM": "dumb", **passed}
