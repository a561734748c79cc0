"""The command ``claudomator``: the commands of ``cli``, and those that need the agents or are the daemon itself."""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from claudomator_py.cli.plainly import shown

if TYPE_CHECKING:
    import typer

    from claudomator_py.cli import diagnose, validate
    from claudomator_py.domain.agent import AgentSpec
    from claudomator_py.domain.task import TaskSpec
    from claudomator_py.domain.verdict import VerdictView
    from claudomator_py.environment.registry import AgentRegistry
    from claudomator_py.resources.policy.cli import RuleContext, Tester
    from claudomator_py.schema.settings import Settings


ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""For numpy, before it is imported: vectors are small, and threads that wait for each other cost more than they do."""


NO_PLUGINS = ("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""For pydantic, which with the first model looks at all that is installed for what could extend it: 6 to 12 ms."""


def serve_command() -> Callable[..., None]:
    """Return the command that is the daemon."""
    import typer

    from claudomator_py.cli.connect import ConfigOption
    from claudomator_py.imports import bulk_import

    with bulk_import():
        from claudomator_py.schema.settings import LogFormat  # what other commands do without

    def serve(
        config: ConfigOption = None,
        state_dir: Annotated[Path | None, typer.Option("--state-dir", metavar="DIR", help="The state folder.")] = None,
        listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where the API listens.")] = None,
        log_format: Annotated[LogFormat | None, typer.Option(help="How to write the log.", show_default=False)] = None,
    ) -> None:
        """Run the daemon in the foreground."""
        os.environ.setdefault(*ONE_THREAD)
        with bulk_import():
            from claudomator_py.app.serving import serve as run_daemon

        raise typer.Exit(run_daemon(config, state_dir, listen, log_format))

    return serve


def readers() -> "dict[str, Callable[[], diagnose.Reader]]":
    """Return the readers of every kind of agent."""
    from claudomator_py.agents.catalogue import AGENT_KINDS  # only ``diagnose`` reads what agents wrote

    return {name: kind.reader for name, kind in AGENT_KINDS.items()}


def judge(config: Path | None) -> "validate.Judge":
    """Return what the daemon of that configuration, else of the one that is found, makes of files. Raises
    ClientError."""
    from claudomator_py.cli import validate
    from claudomator_py.client.discovery import configuration
    from claudomator_py.environment.workdirs import Workdirs
    from claudomator_py.schema.cardfile import shipped_files
    from claudomator_py.schema.configfile import resolve_state_dir
    from claudomator_py.tasks.feasibility import acceptance_warnings, open_to, placement_problems

    loaded = configuration(config, os.environ, Path.cwd())
    settings = loaded.settings
    roots = tuple(map(Path, settings.workdir_roots))
    own = (resolve_state_dir(None, settings, os.environ, loaded.base_dir), *map(Path, settings.inbox.paths))
    registry, workdirs = _agents_of(settings), Workdirs(roots, own if loaded.path is not None else ())
    there = _agents_there(registry, settings)
    return validate.Judge(
        refusals=lambda spec: placement_problems(spec, registry, workdirs),
        warnings=lambda spec: acceptance_warnings(spec, registry),
        lacking=lambda spec: [text for agent in open_to(spec, there) for text in registry.unsupported(spec, agent)],
        card_folders=tuple(map(Path, settings.routing.specialists)),
        shipped=shipped_files if settings.routing.shipped else tuple,
    )


def _agents_of(settings: "Settings") -> "AgentRegistry":
    """The agents that are configured. Which programs are there is a matter of the daemon's machine: without a
    configuration all kinds are."""
    from claudomator_py.agents.catalogue import AGENT_KINDS  # see ``readers``
    from claudomator_py.environment.registry import AgentRegistry
    from claudomator_py.schema.agent_settings import FOUND_KINDS, default_agent

    usual = [default_agent(kind) for kind in (*FOUND_KINDS, "simulated")]
    return AgentRegistry([*settings.agents.values()] if settings.agents_configured else usual, AGENT_KINDS, "")


def _agents_there(registry: "AgentRegistry", settings: "Settings") -> "Sequence[AgentSpec]":
    """The agents that a daemon would have here: the configured ones, else those whose programs are found; all, where
    none is, as the daemon is elsewhere then."""
    from claudomator_py.agents.programs import detected_agents

    if settings.agents_configured:
        return registry.configured
    agents = [agent for agent in detected_agents(os.environ.get("PATH", os.defpath)) if agent.auto_select]
    return agents or registry.configured


def validate_command() -> Callable[..., None]:
    """Return the command that checks files."""
    from claudomator_py.cli import validate

    return validate.command(judge)


def diagnose_command() -> Callable[..., None]:
    """Return the command that reads a saved run."""
    from claudomator_py.cli import diagnose

    return diagnose.command(readers)


def calibrate_command() -> Callable[..., None]:
    """Return the command that fits thresholds and weights."""
    from claudomator_py.lab.calibrate_command import calibrate

    os.environ.setdefault(*ONE_THREAD)
    return calibrate


def eval_command() -> Callable[..., None]:
    """Return the command that judges decisions by a labelled set."""
    from claudomator_py.lab.eval_command import evaluate

    os.environ.setdefault(*ONE_THREAD)
    return evaluate


def mcp_server() -> Callable[..., None]:
    """Return the command that is an MCP server: of the tools of a run where one starts it, else of those for anybody.
    Agents of runs start theirs without what the others import: ``agents.programs``."""
    import typer

    from claudomator_py.cli.connect import ConfigOption, StateDirOption

    def mcp(config: ConfigOption = None, state_dir: StateDirOption = None) -> None:
        """Serve tools to an agent over stdin and stdout (MCP).

        With them it submits tasks, asks how they stand, and reads results and changes, as far as the role of its token
        allows. In a run, they are the run's own.
        """
        from claudomator_py.agents.mcp_server import ToolFailed
        from claudomator_py.agents.mcp_server import main as server
        from claudomator_py.cli import mcp_tools

        if server.RUN_VARIABLE in os.environ:
            raise typer.Exit(server.main([str(_state_folder(config, state_dir))]))
        desk = mcp_tools.DeskTools(config, state_dir)

        def call(name: str, arguments: Mapping[str, object]) -> str:
            try:
                return desk.call(name, arguments)
            except mcp_tools.ToolRefused as refused:
                raise ToolFailed(str(refused)) from refused

        server.serve_here(server.Server(mcp_tools.INSTRUCTIONS, mcp_tools.DESCRIPTIONS, call))

    return mcp


def _state_folder(config: Path | None, state_dir: Path | None) -> Path:
    """The state folder that these options name, or the configuration that is found. Raises ClientError."""
    from claudomator_py.client.discovery import configuration
    from claudomator_py.schema.configfile import resolve_state_dir
    from claudomator_py.schema.configpath import state_folder

    if state_dir is not None:
        return state_folder(state_dir, None, os.environ, Path.cwd())
    loaded = configuration(config, os.environ, Path.cwd())
    return resolve_state_dir(None, loaded.settings, os.environ, loaded.base_dir)


def replay_command() -> Callable[..., None]:
    """Return the command that decides again what was decided."""
    from claudomator_py.lab.replay_command import replay

    os.environ.setdefault(*ONE_THREAD)
    return replay


def policy_group() -> "typer.Typer":
    """Return the commands about the policy."""
    from claudomator_py.cli.app import group_of
    from claudomator_py.resources.policy.cli import show, testing

    return group_of({"show": show, "test": testing(policy_test)})


def policy_test(config: Path | None) -> "Tester":
    """Return what the rules of that configuration, else of the one that is found, say of a task. Raises ClientError."""
    from claudomator_py.client.discovery import configuration
    from claudomator_py.dispatch.policing import try_rules
    from claudomator_py.policy.facts import Facts
    from claudomator_py.policy.verdict import Policy

    settings = configuration(config, os.environ, Path.cwd()).settings
    rules, registry = Policy(settings.policy), _agents_of(settings)

    def verdict(spec: "TaskSpec", asked: "RuleContext") -> "VerdictView":
        facts = Facts(spec, asked.actor, asked.source, asked.specialist or spec.specialist, spec.skill)
        reviews = settings.routing.enabled
        return try_rules(rules, facts, settings.budget, asked.spent, asked.now_ms, registry, reviews=reviews)

    return verdict


def application() -> "typer.Typer":
    """Return the whole command line."""
    from claudomator_py.cli.app import LazyCommand, build

    others = {
        "validate": LazyCommand(
            "Check task files, card files and a configuration. Exits with 1 if one has a problem.", validate_command
        ),
        "diagnose": LazyCommand("Print the outcome of an agent run that was saved to files.", diagnose_command),
        "calibrate": LazyCommand("Fit thresholds and weights to labelled tasks.", calibrate_command),
        "eval": LazyCommand("Evaluate routing, or triage, on a labelled set.", eval_command),
        "mcp": LazyCommand("Serve tools to an agent over stdin and stdout (MCP).", mcp_server),
        "policy": LazyCommand("The policy: show its rules, test them on task files.", policy_group),
        "replay": LazyCommand("Replay recorded placements from their snapshots.", replay_command),
        "serve": LazyCommand("Run the daemon in the foreground.", serve_command),
    }
    return build(others)


def main() -> None:
    """Run the command line."""
    os.environ.setdefault(*NO_PLUGINS)
    _open_closed_streams()
    try:
        if not shown(sys.argv[1:]):
            from claudomator_py.cli.app import run

            run(application())
    finally:
        # The system takes it all back at once; the interpreter's last collections would take a quarter of a start.
        gc.freeze()
        _flush()


def _open_closed_streams() -> None:
    """Open /dev/null in place of standard streams that are closed, before a file or socket takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


def _flush() -> None:
    """Write what is left in the buffer, such as the help, while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except OSError:
        from claudomator_py.cli.output import leaving_if_unwritten

        with leaving_if_unwritten():
            raise


if __name__ == "__main__":
    main()
