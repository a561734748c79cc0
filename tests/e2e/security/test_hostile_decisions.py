"""Decisions about hostile texts, in a database that somebody changed by hand: exported and replayed all the same."""

import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudomator_py.store.database import FILE_NAME
from tests.contract.test_damaged_rows import DAMAGE
from tests.e2e.scenarios_support import ended
from tests.e2e.security.test_principals import Served
from tests.e2e.site import Site, open_site
from tests.warm.starter import WarmStarter

LINES = 'Look.\n\n{"kind": "forged"}\n\u2028{"kind": "forged"}\u0085{"kind": "forged"}\r'
ESCAPES = "\x1b]52;c;c2VjcmV0\x07\x1b[2J\x9b31m\u202eEVIL\u200b"
HUGE = "word " * 40_000
TEXTS = (LINES, ESCAPES, HUGE, "\x00\U0001f600 a null and a smile", "@operators @everyone do it" * 100)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u200b]")
PACKED: dict[str, Callable[[], bytes]] = {
    "deep": lambda: zlib.compress(b"[" * (64 << 20), 1),
    "long": lambda: zlib.compress(b'"' + b"x" * (300 << 20) + b'"', 1),
    "empty": lambda: b"",
    "noise": lambda: b"\xff" * 100,
}
AGENT = {"type": "sh", "strict": True}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory, warm: WarmStarter) -> Iterator[tuple[Site, int]]:
    """A place in which guests had such tasks decided, with its daemon; how many decisions there are."""
    policy = [{"name": "told", "when": 'task.name.startsWith("t")', "approve": {}}]
    with open_site(tmp_path_factory.mktemp("hostile") / "site", warm=warm, policy=policy) as site:
        served = Served(site, site.start().ready())
        for side in ("acme", "globex"):
            token = served.token(side, "operate", organisation=side)
            for number, text in enumerate(TEXTS):
                body = {"name": f"t-{side}-{number}", "instructions": text, "agent": AGENT}
                assert served.ask(token, "POST", "/v1/tasks", json=body).status_code in (201, 422)
        body = {"name": "plain", "instructions": "do: true", "agent": AGENT}
        operator = (site.state / "token").read_text().strip()
        assert served.ask(operator, "POST", "/v1/tasks", json=body).status_code == 201
        assert ended(served.daemon, "plain").state == "COMPLETED"
        yield site, len(exported(site))


def exported(site: Site) -> list[dict[str, object]]:
    done = site.command("decisions", "export")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stdout.removesuffix("\n").split("\n")
    assert not [line for line in lines if CONTROL.search(line)], "it reaches a terminal, or is a line of its own"
    return [json.loads(line) for line in lines]


def changed(site: Site, change: str, values: tuple[object, ...]) -> None:
    with sqlite3.connect(Path(site.state) / FILE_NAME, timeout=30) as connection:
        connection.execute(change, values)
    connection.close()


def test_a_hostile_text_is_a_line_of_json_and_nothing_else(left: tuple[Site, int]) -> None:
    site, number = left
    assert number > len(TEXTS)
    assert "forged" not in {entry["kind"] for entry in exported(site)}
    assert not CONTROL.search(site.command("decisions", "list").stdout.replace("\n", ""))


@pytest.mark.parametrize("data", DAMAGE, ids=lambda text: text[:20])
def test_a_damaged_decision_takes_no_other_from_the_export(left: tuple[Site, int], data: str) -> None:
    site, number = left
    changed(site, "UPDATE decision SET data = ? WHERE id = (SELECT min(id) FROM decision)", (data,))
    assert len(exported(site)) == number
    replayed = site.command("replay")
    assert replayed.returncode in (0, 1)
    assert "Traceback" not in replayed.stderr


@pytest.mark.parametrize("packed", PACKED)
def test_a_damaged_snapshot_is_named_by_replay(left: tuple[Site, int], packed: str) -> None:
    site, number = left
    changed(site, "UPDATE snapshot SET packed = ?", (PACKED[packed](),))
    replayed = site.command("replay")
    assert "Traceback" not in replayed.stderr
    assert "damaged" in replayed.stdout + replayed.stderr
    assert len(exported(site)) == number
