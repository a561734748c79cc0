"""What a start costs, told by what is imported and not by a clock, which a busy machine would make a liar of."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from claudomator_py.__main__ import application
from claudomator_py.imports import bulk_import, hiding

# What is there when the command has ended, and how much of it the collector leaves alone.
_RUN = """
import atexit, gc, json, sys

report = sys.argv.pop(1)


@atexit.register
def _write():
    with open(report, "w") as file:
        json.dump([gc.get_freeze_count(), sorted(sys.modules)], file)


from claudomator_py.__main__ import main

main()
"""


THE_DAEMONS = {
    *("sqlmodel", "sqlalchemy", "fastapi", "starlette", "uvicorn", "alembic", "prometheus_client"),
    "claudomator_py.app",
}
NOT_FOR_A_WORD = {"pydantic", "httpx", "yaml", "rich", "asyncio", "claudomator_py.domain", *THE_DAEMONS}
"""What no command needs that only tells of itself."""


def after(tmp_path: Path, *arguments: str) -> tuple[int, set[str]]:
    report = tmp_path / "report.json"
    environ = {"PATH": os.defpath, "HOME": str(tmp_path), "CLAUDOMATOR_STATE_DIR": str(tmp_path / "state")}
    subprocess.run(
        [sys.executable, "-c", _RUN, str(report), *arguments],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    frozen, modules = json.loads(report.read_text())
    return frozen, set(modules)


def test_what_a_command_leaves_is_not_searched_for_garbage_at_its_end(tmp_path: Path) -> None:
    frozen, _ = after(tmp_path, "--help")
    assert frozen > 10_000


@pytest.mark.parametrize("arguments", [("--help",), ()])
def test_what_only_tells_of_itself_imports_no_library_but_typer(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    _, modules = after(tmp_path, *arguments)
    assert "typer" in modules
    assert modules & NOT_FOR_A_WORD == set()


def test_the_help_of_a_command_imports_no_other_command(tmp_path: Path) -> None:
    _, modules = after(tmp_path, "backup", "--help")
    assert "claudomator_py.resources.daemon.cli" in modules
    assert (
        modules
        & {"claudomator_py.resources.tasks.cli_submit", "claudomator_py.resources.overview.cli", "httpx", "yaml"}
        == set()
    )


def test_the_summaries_are_what_the_commands_say_of_themselves() -> None:
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    context = group.make_context("claudomator", [], resilient_parsing=True)
    text = " ".join(group.get_help(context).split())
    assert len(group.commands) > 20
    for name, command in group.commands.items():
        assert f" {name} {command.get_short_help_str(200)}" in text


_SERVING = """
import json, sys
from claudomator_py.imports import bulk_import
with bulk_import():
    import claudomator_py.app.serving
at_start = sorted(sys.modules)
with bulk_import():
    import claudomator_py.app.web_server
modules = sorted(sys.modules)

from claudomator_py.api.app import RESOURCES
from fastapi.openapi.models import OpenAPI
from claudomator_py.resources.runs import RunView
from claudomator_py.resources.tasks import TaskView
from claudomator_py.store.tables import Task

built = [one.__name__ for one in (OpenAPI, RunView, TaskView, Task) if one.__pydantic_complete__]
built += [str(resource) for resource in RESOURCES if "routes" in vars(resource)]
print(json.dumps([at_start, modules, built]))
"""


def test_the_daemon_starts_without_what_nobody_uses_yet() -> None:
    done = subprocess.run([sys.executable, "-c", _SERVING], capture_output=True, timeout=120, check=True)
    at_start, imported, built = json.loads(done.stdout)
    assert "sqlalchemy" in at_start
    # For the first connection.
    assert {name for name in at_start if name.startswith(("fastapi", "starlette", "uvicorn", "anyio"))} == set()
    assert {name for name in at_start if name.startswith("claudomator_py.resources")} == set()
    modules = set(imported)
    assert "fastapi" in modules
    assert modules & {"rich", "pygments", "alembic", "asyncpg", "psycopg", "httpx", "typer", "greenlet"} == set()
    assert "sqlalchemy.orm" not in modules
    # For whoever compares, looks at a page, scrapes, has another database or models of another version.
    assert modules & {"numpy", "jinja2", "prometheus_client", "sqlalchemy.dialects.postgresql"} == set()
    assert "pydantic.v1.main" not in modules
    # For who has schedules, judges texts, or starts an agent of that kind.
    unused = {"apscheduler", "claudomator_py.risk.orders", "claudomator_py.agents.gemini.kind"}
    assert modules & unused == set()
    # For people who look, and for other agents.
    assert modules & {"claudomator_py.api.page.front", "claudomator_py.protocols.a2a"} == set()
    # Routes, and the models of answers, are for who asks.
    assert built == []


def test_the_process_of_a_sentence_model_begins_with_the_standard_library() -> None:
    code = "import claudomator_py.embed.model_worker, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=True)
    modules = set(json.loads(done.stdout))
    assert modules & {"dataclasses", "inspect", "numpy", "pydantic", "claudomator_py.domain"} == set()


def test_models_are_built_at_once_again_after_the_block() -> None:
    with bulk_import():

        class Later(BaseModel):
            number: int

    class AtOnce(BaseModel):
        number: int

    assert (Later.__pydantic_complete__, AtOnce.__pydantic_complete__) == (False, True)
    assert Later.model_validate({"number": "1"}) == Later(number=1)


def test_a_command_that_asks_the_daemon_imports_the_client_and_not_the_command_line_of_httpx(tmp_path: Path) -> None:
    _, modules = after(tmp_path, "status")
    assert "httpx" in modules
    assert modules & {"rich", "pygments", "click", *THE_DAEMONS} == set()
    # What can be configured, and how task files are read, is for who starts the daemon and who writes them.
    assert (
        modules & {"claudomator_py.schema.settings", "claudomator_py.schema.taskfile", "claudomator_py.policy"} == set()
    )
    # So is what recognises in a text: secrets, files and what a tool call does. It takes hundreds of expressions.
    assert modules & {f"claudomator_py.{name}" for name in ("acts.catalogue", "domain.redaction")} == set()
    assert "claudomator_py.domain.transcript" not in modules


def test_a_package_is_hidden_only_while_the_block_lasts() -> None:
    sys.modules.pop("this", None)
    with hiding("this", "json"):
        with pytest.raises(ImportError):
            importlib.import_module("this")
        assert importlib.import_module("json") is json
    assert "this" not in sys.modules
