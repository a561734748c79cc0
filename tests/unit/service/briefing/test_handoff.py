"""The note that one agent leaves to the next."""

import json
from typing import Any

from claudomator_py.agents.catalogue import AGENT_KINDS
from claudomator_py.core.redact import Redactor
from claudomator_py.core.run import RunLimits, RunOrder
from claudomator_py.service.briefing.handoff import MOST_SAID, handoff_note, left_by
from claudomator_py.store.tables import Run
from tests.fakes.runs import MemoryRunHost
from tests.fakes.world import START_MS

RUN = "run"
LIMITED = {"status": "limited", "reason": "rate_limited", "detail": "You've hit your limit", "text": None}


def run(**fields: Any) -> Run:
    usual: dict[str, Any] = {"id": RUN, "task_id": "t", "generation": 1, "attempt": 1, "seq": 1, "revision": 1}
    where: dict[str, Any] = {"kind": "claude", "agent": "home", "dir_key": "", "started_ms": START_MS}
    return Run(**{**usual, **where, "state": "ended", "live": False, "outcome": LIMITED, **fields})


def said(*texts: str) -> bytes:
    messages = [{"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}} for text in texts]
    call = {"type": "tool_use", "id": "1", "name": "Edit", "input": {"file_path": "login.py"}}
    messages.append({"type": "assistant", "message": {"content": [call]}})
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def note(output: bytes, redactor: Redactor | None = None) -> str:
    host = MemoryRunHost()
    host.prepare(RunOrder(RUN, (("claude",),), None, (), (), "", RunLimits(None, None, 0, 0)))
    host.write(RUN, output)
    return handoff_note(run(), host, AGENT_KINDS["claude"].transcript("stdout"), redactor or Redactor())


def test_it_says_who_had_the_task_why_it_stopped_and_what_it_said_and_did_last() -> None:
    text = note(said("I look at the login.", "It redirects twice; I mend it."))
    assert "home, had this task before you" in text
    assert "You've hit your limit" in text
    assert text.index("I look at the login.") < text.index("It redirects twice; I mend it.") < text.index("[Edit]")


def test_it_holds_no_secret_and_is_short() -> None:
    text = note(said("x" * 100_000, "the password is hunter2-hunter2"), Redactor(["hunter2-hunter2"]))
    assert "hunter2" not in text
    assert len(text) < MOST_SAID + 1_000


def test_only_a_limit_leaves_work_to_another_agent() -> None:
    failed = {"status": "failed", "reason": "network"}
    revoked = run(id="later", state="revoked", outcome=None)
    assert left_by([]) is None
    assert left_by([run(outcome=failed)]) is None
    assert left_by([run(), run(id="next", outcome=failed)]) is None
    found = left_by([run(), revoked])
    assert found is not None
    assert found.id == RUN
