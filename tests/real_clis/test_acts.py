"""Scripted models that do what everyday tasks ask for: real agent CLIs stop what acts on others, and nothing else.

The commands themselves are never run: each call ends before its own, and leaves a file behind if it was not stopped.
"""

import shlex
from typing import Any

import pytest

from tests.e2e.scenarios_support import in_state
from tests.fakes.http_api import Text
from tests.real_clis.clis import CLAUDE, CODEX, GEMINI, QWEN, Cli, each
from tests.real_clis.place import Place
from tests.unit.acts.test_everyday import rows

LONG_S = 400.0


def played(place: Place, cli: Cli, wanted: list[dict[str, Any]]) -> list[bool]:
    """Whether each call went through, all by one run after the other."""
    acts, calls = place.site.work / "acts", []
    for number, row in enumerate(wanted):
        folder = acts / str(number)
        for name, text in {".keep": "", **row.get("files", {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        calls.append(cli.shell(f"cd {shlex.quote(str(folder))} && touch done\nexit 0\n{row['command']}"))
    place.api.script(*calls, Text("That is all."))
    daemon = place.start()
    place.drop("greet", permissions=cli.commands, reach="network", timeout="20m")
    in_state(daemon, "greet", "NEEDS_INPUT", "COMPLETED", "FAILED", deadline_s=LONG_S)
    assert len(place.api.requests) == len(calls) + 1
    return [(acts / str(number) / "done").exists() for number in range(len(wanted))]


@each(CLAUDE, CODEX, GEMINI, QWEN, with_settings=True)
@pytest.mark.timeout(500)
def test_what_acts_on_others_is_stopped_before_the_act(place: Place, cli: Cli) -> None:
    result = rows("beyond")
    each_once = [
        row for number, row in enumerate(row for row in result if row["set"] in ("first", "second")) if number % 4 == 3
    ]
    wanted = each_once + [row for row in result if row["set"] == "third"][::2]
    went = [row["command"] for row, through in zip(wanted, played(place, cli, wanted), strict=True) if through]
    assert not went


@each(CLAUDE, CODEX, GEMINI, QWEN, with_settings=True)
@pytest.mark.timeout(500)
def test_what_stays_within_goes_through(place: Place, cli: Cli) -> None:
    wanted = [row for row in rows("within") if row["set"] in ("first", "third", "fifth", "sixth")][::3]
    stopped = [row["command"] for row, through in zip(wanted, played(place, cli, wanted), strict=True) if not through]
    assert "[beyond reach" not in str(place.api.requests[-1].body)
    # Codex has a list of its own, with `rm -rf` in it, and Gemini CLI runs no line with a substitution of any kind.
    own = {CODEX: ("rm -rf",), GEMINI: ("`", "$(", "<(", ">(")}.get(cli, ())
    assert not [command for command in stopped if not any(sign in command for sign in own)]
