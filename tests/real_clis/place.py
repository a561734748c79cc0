"""A site whose daemon runs one real agent CLI, from dropped files, against a fake of its service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from claudomator_py.resources.agents import AgentView
from claudomator_py.resources.runs import OutcomeView
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, in_state, last_run
from tests.e2e.site import SETTLED, Site, open_site
from tests.fakes.http_api import ScriptedApi, ToolCall
from tests.patience import wait_until
from tests.real_clis.bench import repository
from tests.real_clis.clis import Cli, private

END_S = 240.0
"""Only a hang may meet it: what takes seconds on a calm machine takes minutes on one where others work."""
# Comes after every CLI in the alphabet, so that it is the second choice.
NEXT = "zimulated"
EDITS = {"mode": "acceptEdits"}
SLEEP = "sleep 611"


@dataclass
class Place:
    """The CLI is an agent of its own kind's name; its key comes from the daemon's environment by ``pass_env``."""

    cli: Cli
    api: ScriptedApi
    site: Site

    def configure(
        self,
        *,
        key: Mapping[str, str] | None = None,
        origin: str | None = None,
        next_agent: bool = False,
        limits: Mapping[str, str] | None = None,
        **more: object,
    ) -> None:
        """key: the variables that are passed on. origin: of another service. next_agent: whether there is another.

        limits: further ones. more: further keys of the agent.
        """
        cli, service = self.cli, origin or self.api.origin
        agent = {
            "kind": cli.agent_kind,
            "command": [str(cli.program), *cli.words],
            "extra_args": list(cli.extra_args(service)),
            "env": {**private(self.site.root / "home"), **cli.env(service)},
            "pass_env": list(cli.key if key is None else key),
            **({} if cli.models is None else {"models": dict(cli.models)}),
            **more,
        }
        others = {NEXT: {"kind": "simulated", "auto_select": True}} if next_agent else {}
        self.site.configure(
            agents={cli.kind: agent, **others}, limits={"grace": "5s", "min_free": "1MiB", **(limits or {})}
        )

    def start(self, key: Mapping[str, str] | None = None) -> Daemon:
        """A daemon that has the key in its environment and is ready."""
        return self.site.start(**(self.cli.key if key is None else key)).ready()

    def drop(self, name: str, **fields: object) -> None:
        """Drop a task that any agent may take."""
        given = {"agent": None, "permissions": EDITS, "working_dir": str(self.site.work), **fields}
        self.site.drop(f"{name}.yaml", document(None, "Write a greeting.", **given))

    def writes(self) -> ToolCall:
        """The model has it write the greeting."""
        return self.cli.writes(self.greeting)

    @property
    def greeting(self) -> Path:
        """The file that tasks are about."""
        return self.site.work / "hello.txt"

    def sleeps(self) -> ToolCall:
        """The model has it sleep in a tool, once it has made the file ``begun``."""
        return self.cli.shell(f"touch {self.site.work}/begun; {SLEEP}")

    def until_begun(self) -> None:
        """Wait until that tool runs."""
        wait_until((self.site.work / "begun").exists, "the tool to begin", END_S)
        wait_until(lambda: self.running(SLEEP), "the tool to sleep")

    def running(self, command: str) -> list[str]:
        """The command lines of this site's processes in which that stands."""
        return [line for line in self.site.processes().values() if command in line]

    def agent(self, daemon: Daemon) -> AgentView:
        """What the daemon says of the CLI."""
        return next(agent for agent in daemon.client.agents() if agent.name == self.cli.kind)


@contextmanager
def open_place(cli: Cli, root: Path) -> Iterator[Place]:
    """A place under that folder, configured and ready to start. No process is left at the end."""
    with cli.api() as api, open_site(root) as site:
        home = site.root / "home"
        cli.settle_in(home, api.origin)
        repository(site.work, home)
        place = Place(cli, api, site)
        place.configure()
        yield place


def outcome_of(daemon: Daemon, name: str) -> OutcomeView:
    """How the task's last run ended, once it has."""
    in_state(daemon, name, "RUNNING", "WAITING", *SETTLED, deadline_s=END_S)
    return wait_until(lambda: last_run(daemon, name).outcome, f"the end of the run of {name}", END_S)
