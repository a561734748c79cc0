"""Several tasks at once on the page: choosing, looking, and what became of each."""

import re
from urllib.parse import urlencode

from claudomator_py.domain.lifecycle import Completed, Failed, InputKind, NeedsInput, Running
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from tests.fakes.daemon import Answer
from tests.fakes.prepared import PreparedService
from tests.unit.api.page.conftest import Visitor, text_of


def picks(answer: Answer) -> dict[str, str]:
    """The value of each box, by the task's name."""
    results = re.findall(r'name="task" value="([^"]+)".*?<label[^>]*>([^<]+)</label>', answer.body.decode(), re.DOTALL)
    return {name: value for value, name in results}


def send(operator: Visitor, change: str, *tasks: str, sure: bool = False, words: str = "") -> Answer:
    fields = [("task", task) for task in tasks] + ([("sure", "yes")] if sure else []) + [("words", words)]
    return operator.post_raw(f"/select/{change}", urlencode(fields).encode())


def test_what_is_chosen_is_looked_at_and_then_done(operator: Visitor, prepared: PreparedService) -> None:
    for name in ("fix-login", "fix-logout"):
        prepared.add(name, Failed(Reason.TIMEOUT), tags=("shop",))
    prepared.add("write-notes", Failed(Reason.LOST))
    assert "/select?state=FAILED&amp;tag=shop" in operator.get("/?state=FAILED&tag=shop").body.decode()
    page = operator.get("/select?state=FAILED&tag=shop")
    chosen = picks(page)
    assert set(chosen) == {"fix-login", "fix-logout"}
    assert "checked" not in page.body.decode()
    assert operator.get("/select?state=FAILED&marked=all").body.decode().count(" checked>") == 3
    asked = send(operator, "restart", *chosen.values())
    assert (asked.status, "Restart these 2 tasks?" in text_of(asked)) == (200, True)
    assert {task.state for task in map(prepared.task, prepared.task_ids())} == {"FAILED"}
    done = send(operator, "restart", *chosen.values(), sure=True)
    assert (done.status, "Restart: 2 done" in text_of(done)) == (200, True)
    assert {task.name: task.state for task in map(prepared.task, prepared.task_ids())} == {
        "fix-login": "QUEUED",
        "fix-logout": "QUEUED",
        "write-notes": "FAILED",
    }


def test_one_that_changed_meanwhile_is_left_and_said(operator: Visitor, prepared: PreparedService) -> None:
    works, waits = prepared.add("works", Running()), prepared.add("waits")
    chosen = picks(operator.get("/select"))
    prepared.move(works, Completed())
    done = send(operator, "cancel", *chosen.values(), sure=True)
    assert "Cancel: 1 done, 1 not" in text_of(done)
    assert "Check its current state" in text_of(done)
    assert (prepared.task(works).state, prepared.task(waits).state) == ("COMPLETED", "CANCELLED")


def test_what_is_no_choice_is_refused(operator: Visitor, stranger: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it")
    assert send(operator, "cancel").status == 422
    for bad in ("it", "it:x", f"{task}:99999999999999999999"):
        assert send(operator, "cancel", bad, sure=True).status == 422
    assert send(operator, "delete", f"{task}:1").status in (404, 422)
    assert send(stranger, "cancel", f"{task}:1", sure=True).status == 401
    assert prepared.task(task).state == "QUEUED"
    assert "No matching task" in text_of(operator.get("/select?state=COMPLETED"))


def test_all_that_ask_are_answered_approved_or_rejected_at_once(operator: Visitor, prepared: PreparedService) -> None:
    """What a change cannot be done to is said beforehand, and left."""
    for name in ("asks-one", "asks-two"):
        task = prepared.add(name, NeedsInput(InputKind.QUESTION))
        prepared.add_run(task, outcome=Outcome(status=OutcomeStatus.NEEDS_INPUT))
    for name in ("ship-one", "ship-two"):
        prepared.add(name, NeedsInput(InputKind.APPROVAL))
    prepared.add("broken", Failed(Reason.LOST))
    boxes = re.findall(r'name="task" form="chosen" value="([^"]+)" aria-label="Select ([^"]+)"', front(operator))
    chosen = {name: value for value, name in boxes}
    assert set(chosen) == {"asks-one", "asks-two", "ship-one", "ship-two", "broken"}
    asked = text_of(send(operator, "approve", *chosen.values()))
    assert "Approve these 2 tasks?" in asked
    assert "Left as they are, as this is not possible for them:" in asked
    ships, questions = [chosen["ship-one"]], [chosen["asks-one"], chosen["asks-two"]]
    assert "Approve: 1 done" in text_of(send(operator, "approve", *ships, sure=True))
    assert "Reject: 1 done" in text_of(send(operator, "reject", chosen["ship-two"], sure=True, words="Not now."))
    assert send(operator, "answer", *questions, sure=True, words=" ").status == 422
    assert "Answer: 2 done" in text_of(send(operator, "answer", *questions, sure=True, words="Blue."))
    states = {task.name: (task.state, task.reason) for task in map(prepared.task, prepared.task_ids())}
    assert states["ship-two"] == ("FAILED", "rejected")
    assert {states[name][0] for name in ("asks-one", "asks-two", "ship-one")} == {"QUEUED"}
    assert "nothing?" in text_of(send(operator, "answer", chosen["broken"]))


def front(operator: Visitor) -> str:
    return operator.get("/").body.decode()
