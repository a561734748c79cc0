"""``doctor``: find what could keep the daemon from working, and say what to do about it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claudomator_py.cli import ExitCode
from claudomator_py.cli.connect import ConfigOption, StateDirOption
from claudomator_py.cli.output import fail, formatted, note, wants_json, write_table
from claudomator_py.surface.table import Column, Table

if TYPE_CHECKING:
    from claudomator_py.cli.doctor import Finding
    from claudomator_py.schema.settings import Settings


def _found(finding: "Finding") -> str:
    """Return what was found; of several problems, which all follow below the table, the first."""
    first, *others = finding.detail.split("\n") if finding.remedy else (finding.detail,)
    return f"{first} (and {len(others)} more)" if others else first


_FINDINGS = Table["Finding"](
    Column("VERDICT", lambda finding: finding.verdict.value),
    Column("CHECK", lambda finding: finding.name),
    Column("FOUND", _found, flexible=True),
)


@formatted
def doctor(
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a .tar.gz for a bug report, without secrets or task texts."),
    ] = None,
    include_tasks: Annotated[bool, typer.Option("--include-tasks", help="With --bundle: include task texts.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also have each cluster run a job of some seconds, to try its file system.")
    ] = False,
) -> None:
    """Check the set-up, and say what to fix.

    Checks configuration, folders, daemon, agents and their logins, the service and the machine, and says how to fix
    what is wrong. Exits with 1 if there is a problem; warnings do not count.
    """
    from claudomator_py.cli.doctor import Severity

    if include_tasks and bundle is None:
        raise typer.BadParameter("--include-tasks requires --bundle")
    settings, findings = _look(config, state_dir)
    if probe:
        from claudomator_py.cli.doctor.hosts import probe_findings  # few have a cluster

        for name, host in settings.hosts.items():
            findings += probe_findings(name, host, [*settings.agents.values()], os.environ)
    write_table(_FINDINGS, findings, "")
    if not wants_json():
        for finding in findings:
            if finding.remedy:
                note(f"{finding.name}: {finding.detail}\n  {finding.remedy}")
    if bundle is not None:
        from claudomator_py.cli.doctor.bundle import write_bundle

        try:
            write_bundle(bundle, findings, settings, (config, state_dir), tasks=include_tasks)
        except FileExistsError:
            fail(f"{bundle} already exists.", "Name another file, or remove it.")
        except OSError as error:
            fail(f"{bundle} cannot be written: {error.strerror}.", "Name a file in a folder you can write.")
        note(f"{bundle} written; review it before you send it.")
    if any(finding.verdict is Severity.PROBLEM for finding in findings):
        raise typer.Exit(ExitCode.FAILURE)


def _look(config: Path | None, state_dir: Path | None) -> "tuple[Settings, list[Finding]]":
    """Return the settings, or the defaults if they cannot be read, and all findings."""
    from claudomator_py.cli.doctor import problem
    from claudomator_py.client import DiscoveryFailed
    from claudomator_py.client.discovery import configuration
    from claudomator_py.schema.settings import Settings

    try:
        loaded = configuration(config, os.environ, Path.cwd())
    except DiscoveryFailed as error:
        remedy = "Fix the problem, or use another file with --config."
        settings = Settings()
        checks = [problem("configuration", error.detail, remedy), *_without_configuration(settings, config, state_dir)]
        return settings, checks
    return loaded.settings, list(_all(loaded.settings, loaded.path, loaded.base_dir, config, state_dir))


def _all(
    settings: "Settings", path: Path | None, base_dir: Path, config: Path | None, state_dir: Path | None
) -> "Iterator[Finding]":
    from claudomator_py.cli.doctor.agents import agent_findings
    from claudomator_py.cli.doctor.daemon import daemon_findings
    from claudomator_py.cli.doctor.folders import configuration, inbox_findings, state_findings
    from claudomator_py.client.discovery import state_in_use
    from claudomator_py.schema.configfile import resolve_state_dir
    from claudomator_py.schema.configpath import CONFIG_VARIABLE

    running = state_in_use(config, state_dir, os.environ, Path.cwd())
    state = running or resolve_state_dir(state_dir, settings, os.environ, base_dir)
    named = config is not None or bool(os.environ.get(CONFIG_VARIABLE))
    yield configuration(path, state, named=named)
    yield from state_findings(state, settings)
    if path is not None or running is None:
        # Without a configuration it is `tasks` below wherever this is typed, and a running daemon reports its own.
        yield from inbox_findings(settings.inbox, base_dir, state)
    daemon, asked = daemon_findings(config, state_dir)
    yield from daemon
    yield from agent_findings(settings, asked, os.environ)
    if settings.hosts:
        from claudomator_py.cli.doctor.hosts import host_findings, tools_findings  # few have one

        for name, host in settings.hosts.items():
            yield from host_findings(name, host)
            yield from tools_findings(name, settings)
    yield from _around(settings)


def _without_configuration(settings: "Settings", config: Path | None, state_dir: Path | None) -> "Iterator[Finding]":
    """Yield what can be checked without a configuration: a running daemon, which keeps the one it read before."""
    from claudomator_py.cli.doctor.agents import agent_findings
    from claudomator_py.cli.doctor.daemon import daemon_findings
    from claudomator_py.client.discovery import state_in_use

    if state_in_use(config, state_dir, os.environ, Path.cwd()) is not None:
        daemon, asked = daemon_findings(config, state_dir)
        yield from daemon
        yield from agent_findings(settings, asked or [], os.environ)
    yield from _around(settings)


def _around(settings: "Settings") -> "Iterator[Finding]":
    from claudomator_py.cli.doctor.daemon import service_findings
    from claudomator_py.cli.doctor.machine import machine_findings

    yield from service_findings(Path.home(), agents_configured=settings.agents_configured)
    yield from machine_findings()
