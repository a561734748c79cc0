"""The page of a task, and the forms by which its operator acts on it."""

import re
from pathlib import Path

import pytest

from claudomator_py.domain.lifecycle import (
    Cancelled,
    Completed,
    Failed,
    InputKind,
    NeedsInput,
    Phase,
    Queued,
    Running,
    State,
    Waiting,
    WaitReason,
)
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason, Tokens
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.run import CheckResult
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.policy.service import PolicyService
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import task_rows
from claudomator_py.store.task_rows import resumption_of
from tests.fakes.cards import card
from tests.fakes.daemon import running
from tests.fakes.prepared import START_MS, PreparedService
from tests.fakes.steps import spec
from tests.unit.api.page.conftest import Visitor, hidden, log_in, text_of


@pytest.mark.parametrize(
    ("state", "words"), [(Queued(), "It has not started yet."), (Cancelled(), "It never started.")]
)
def test_a_task_without_runs_says_whether_it_may_have_some(
    operator: Visitor, prepared: PreparedService, state: State, words: str
) -> None:
    assert words in text_of(operator.get(f"/tasks/{prepared.add('it', state)}"))


def test_what_a_task_depends_on_and_continues_is_linked_once_it_exists(
    operator: Visitor, prepared: PreparedService
) -> None:
    first = prepared.add("first")
    second = prepared.add("second")
    after = prepared.add("after", depends_on=["first", "unseen"], continues="second")
    page = operator.get(f"/tasks/{after}").body.decode()
    assert f'<dt>Depends on</dt><dd><a href="/tasks/{first}">first (queued)</a>, unseen (not seen yet)</dd>' in page
    assert f'<dt>Continues</dt><dd><a href="/tasks/{second}">second (queued)</a></dd>' in page


def test_everything_about_a_task(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("fix-login", Running(Phase.RUNNING), instructions="Find out why.", tags=["shop"], source="file")
    outcome = Outcome(
        status=OutcomeStatus.FAILED,
        reason=Reason.CHECK_FAILED,
        detail="make: *** [test] Error 1",
        tokens=Tokens(input=18_200, output=1_240),
        cost_usd=0.31,
    )
    first = prepared.add_run(task, outcome=outcome)
    last = prepared.add_run(task)
    page = operator.get(f"/tasks/{task}")
    text = text_of(page)
    for words in (
        "check_failed The agent said it was done, but the task's check did not pass.",
        "make: *** [test] Error 1",
        "18,200 in, 1,240 out",
        "$0.31",
        "Run 2",
        "Find out why.",
        "tasks/it.yaml",
        "Accepted",
    ):
        assert words in text
    assert f'data-run="{last}"' in page.body.decode()
    assert f'data-run="{first}"' in operator.get(f"/tasks/{task}?run={first}").body.decode()


def test_why_it_ran_where_it_did(operator: Visitor, prepared: PreparedService) -> None:
    for agent in ("claude", "codex"):
        prepared.add_agent(agent)
    prepared.limit("claude", START_MS + HOUR_MS)
    task = prepared.add("it")
    prepared.world.tick()
    text = text_of(operator.get(f"/tasks/{task}"))
    for words in ("limited", "least active"):
        assert words in text


def test_the_check_of_a_run_with_its_commands_and_the_way_to_its_output(
    operator: Visitor, prepared: PreparedService
) -> None:
    task = prepared.add("it", Failed(Reason.CHECK_FAILED))
    failed = Outcome(status=OutcomeStatus.FAILED, reason=Reason.CHECK_FAILED, detail="check `make lint` exited")
    check = CheckResult(
        status="failed",
        commands=(("make", "test"), ("make", "lint"), ("make", "e2e")),
        step=1,
        exit_code=2,
        started_ms=START_MS,
        ended_ms=START_MS + 3_000,
        output="E501 <b>",
    )
    run = prepared.add_run(task, outcome=failed, check=check)
    page = operator.get(f"/tasks/{task}")
    text = text_of(page)
    assert "E501 <b> check failed took 3s output of the check of Run 1" in text
    assert "make test passed make lint exited with 2 make e2e not run" in text
    assert f'href="/tasks/{task}?run={run}&amp;check=true#log"' in page.body.decode()
    assert "data-check" not in page.body.decode()
    its_log = operator.get(f"/tasks/{task}?run={run}&check=true")
    assert 'data-check="true"' in its_log.body.decode()
    assert "Check of run 1" in text_of(its_log)


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        (Queued(), {"Cancel…"}),
        (Waiting(WaitReason.TIME), {"Cancel…", "Restart…"}),
        (NeedsInput(InputKind.LOGIN), {"Cancel…", "Restart…"}),
        (Running(), {"Cancel…", "Cancel and restart…"}),
        (Completed(), {"Restart…"}),
        (Failed(Reason.TIMEOUT), {"Restart…"}),
    ],
)
def test_exactly_the_actions_that_are_offered(
    operator: Visitor, prepared: PreparedService, state: State, offered: set[str]
) -> None:
    task = prepared.add("it", state)
    body = operator.get(f"/tasks/{task}").body.decode()
    assert set(re.findall(r'<a class="button[^>]*>([^<]+)</a>', body)) == offered


def test_looking_at_a_form_changes_nothing(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Waiting(WaitReason.TIME))
    for form in ("cancel", "restart"):
        assert operator.get(f"/tasks/{task}/{form}").status == 200
    assert prepared.task(task).version == 1


def test_cancel_asks_first(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Running())
    prepared.add_run(task)
    form = operator.get(f"/tasks/{task}/cancel")
    assert "Its run is stopped." in text_of(form)
    answer = operator.post(f"/tasks/{task}/cancel", {"version": hidden(form, "version")})
    assert (answer.status, answer.headers["location"]) == (303, f"/tasks/{task}")
    prepared.settle()
    assert prepared.task(task).state == "CANCELLED"


def test_what_was_denied_is_offered_to_be_allowed(operator: Visitor, prepared: PreparedService) -> None:
    def asks(name: str) -> tuple[str, str]:
        task = prepared.add(name, NeedsInput(InputKind.APPROVAL))
        prepared.add_run(task)
        form = operator.get(f"/tasks/{task}/approve")
        assert ">Bash(npm publish)</textarea>" in form.body.decode()
        return task, hidden(form, "version")

    for name, tools, allowed in (
        ("as-offered", "Bash(npm publish)\r\n", ["Bash(npm publish)"]),
        ("other", "Bash(npm pack)\r\n\r\nRead", ["Bash(npm pack)", "Read"]),
    ):
        task, version = asks(name)
        assert operator.post(f"/tasks/{task}/approve", {"version": version, "tools": tools}).status == 303
        assert prepared.heard()[-1][1:] == ("approved", {"tools": allowed})
    task, version = asks("none")
    refused = operator.post(f"/tasks/{task}/approve", {"version": version, "tools": " "})
    assert refused.status == 422
    assert "No tool to allow was named." in text_of(refused)


def test_nobody_acts_on_what_he_has_not_seen(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Waiting(WaitReason.TIME))
    seen = hidden(operator.get(f"/tasks/{task}/cancel"), "version")
    prepared.move(task, Running())
    answer = operator.post(f"/tasks/{task}/cancel", {"version": seen})
    assert answer.status == 412
    assert "Changed in the meantime" in text_of(answer)
    assert "Check its current state" in text_of(answer)
    assert "Its run is stopped." in text_of(answer)  # the form as it is now
    assert prepared.task(task).state == "RUNNING"
    again = operator.post(f"/tasks/{task}/cancel", {"version": hidden(answer, "version")})
    assert again.status == 303


def test_what_has_ended_cannot_be_cancelled(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it")
    version = hidden(operator.get(f"/tasks/{task}/cancel"), "version")
    prepared.move(task, Completed())
    answer = operator.post(f"/tasks/{task}/cancel", {"version": int(version) + 1})
    assert answer.status == 409
    assert "has ended already" in text_of(answer)
    assert 'name="version"' not in answer.body.decode()


def test_restart_with_changes(operator: Visitor, prepared: PreparedService) -> None:
    prepared.add_agent("claude")
    prepared.add_agent("codex")
    task = prepared.add("it", Failed(Reason.TIMEOUT))
    form = operator.get(f"/tasks/{task}/restart")
    assert re.findall(r"<option[^>]*>([a-z]+)</option>", form.body.decode()) == [
        "claude",
        "codex",
        "fast",
        "balanced",
        "powerful",
    ]
    fields = {"version": hidden(form, "version"), "agent": "codex", "tier": "powerful", "model": " ", "reason": "again"}
    assert operator.post(f"/tasks/{task}/restart", fields).status == 303
    result = prepared.task(task)
    assert (result.state, result.generation, result.agent) == ("QUEUED", 2, "codex")


def test_restarting_what_runs_says_that_it_is_cancelled(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Running())
    prepared.add_run(task)
    form = operator.get(f"/tasks/{task}/restart")
    assert "that run is cancelled first" in text_of(form)
    fields = {"version": hidden(form, "version"), "force": hidden(form, "force")}
    assert operator.post(f"/tasks/{task}/restart", fields).status == 303
    prepared.settle()
    assert prepared.task(task).generation == 2


def test_a_refused_restart_keeps_what_was_entered(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Failed(Reason.TIMEOUT))
    fields = {"version": 1, "tier": "enormous", "reason": 'said "so"', "model": "opus"}
    answer = operator.post(f"/tasks/{task}/restart", fields)
    assert answer.status == 422
    assert "enormous is not one of fast, balanced, powerful" in text_of(answer)
    assert 'value="opus"' in answer.body.decode()
    assert "said &#34;so&#34;</textarea>" in answer.body.decode()
    assert prepared.task(task).state == "FAILED"


def test_a_conversation_can_be_gone_on_with_where_there_is_one(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Failed(Reason.TIMEOUT))
    assert 'name="resume"' not in operator.get(f"/tasks/{task}/restart").body.decode()
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.TIMEOUT, conversation_id="abc")
    prepared.add_run(task, outcome=outcome)
    assert 'name="resume"' in operator.get(f"/tasks/{task}/restart").body.decode()


@pytest.mark.parametrize("version", ["", "x", "-1", "1.5"])
def test_a_form_without_a_version_does_nothing(operator: Visitor, prepared: PreparedService, version: str) -> None:
    task = prepared.add("it")
    answer = operator.post(f"/tasks/{task}/cancel", {"version": version})
    assert answer.status == 422
    assert answer.headers["content-type"].startswith("text/html")
    assert prepared.task(task).state == "QUEUED"


def test_hostile_instructions_and_results_are_text(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", Completed(), instructions="</pre><script>alert(1)</script>", env={"A": "<b>"})
    outcome = Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR, detail="<svg onload=alert(1)>")
    prepared.add_run(task, outcome=outcome)
    prepared.move(task, Completed(), result_text="<script>alert(2)</script>")
    page = operator.get(f"/tasks/{task}")
    for words in ("</pre><script>alert(1)</script>", "<script>alert(2)</script>", "<svg onload=alert(1)>"):
        assert words in text_of(page)
        assert words not in page.body.decode()


@pytest.fixture
def routed(prepared: PreparedService) -> str:
    """A task that was routed by its text."""
    examples = ["Restore last night's dump."]
    for entry in (
        card("db-admin", name="Keeper", skills=[{"id": "backup", "name": "Backups", "examples": examples}]),
        card("painter"),
    ):
        prepared.access.as_(OPERATOR)[Specialists].register(entry)
    task = prepared.service.submit(spec("it", instructions="Restore last night's dump of the orders.")).id
    prepared.world.router.route()
    return task


def test_who_does_it_and_who_else_was_compared(operator: Visitor, prepared: PreparedService, routed: str) -> None:
    page = operator.get(f"/tasks/{routed}")
    text = text_of(page)
    for words in (
        "Specialist db-admin",
        "it went to db-admin (skill backup): it matches db-admin best.",
        "Specialists compared, with a threshold of 0.",
        "db-admin backup 0.",
        "semantic 0.",
        "chosen",
        "painter",
    ):
        assert words in text
    assert '<dd><a id="specialist" href="/specialists/db-admin">db-admin</a></dd>' in page.body.decode()
    assert "?specialist=" not in page.body.decode()  # a queued one is not restarted
    prepared.service.cancel(routed)
    assert f'href="/tasks/{routed}/restart?specialist=painter"' in operator.get(f"/tasks/{routed}").body.decode()


def test_a_restart_gives_it_to_somebody_else(operator: Visitor, prepared: PreparedService, routed: str) -> None:
    prepared.service.cancel(routed)
    form = operator.get(f"/tasks/{routed}/restart?specialist=painter")
    body = form.body.decode()
    assert 'name="specialist" value="painter"' in body
    assert '<option value="db-admin">Keeper</option>' in body
    version = hidden(form, "version")
    refused = operator.post(f"/tasks/{routed}/restart", {"version": version, "specialist": "paintre"})
    assert (refused.status, "did you mean painter?" in text_of(refused)) == (422, True)
    assert operator.post(f"/tasks/{routed}/restart", {"version": version, "specialist": "painter"}).status == 303
    prepared.world.router.route()
    assert prepared.task(routed).specialist == "painter"
    assert "it went to painter" in text_of(operator.get(f"/tasks/{routed}"))


def test_who_is_asked_for_a_specialist_is_offered_them(operator: Visitor, prepared: PreparedService) -> None:
    specialists = prepared.access.as_(OPERATOR)[Specialists]
    for name in ("painter", "plumber"):
        specialists.register(card(name))
    task = prepared.service.submit(spec("it", specialist="painter")).id
    specialists.remove("painter")
    prepared.world.router.route()
    form = operator.get(f"/tasks/{task}/answer")
    assert "The specialist" in text_of(form)
    assert '<option value="plumber">plumber</option>' in form.body.decode()
    fields = {"version": hidden(form, "version"), "text": "plumber"}
    assert operator.post(f"/tasks/{task}/answer", fields).status == 303
    prepared.world.router.route()
    assert prepared.task(task).specialist == "plumber"
    assert "plumber" in text_of(operator.get("/")).partition("Queued and waiting")[2].partition("Recent")[0]


def test_who_does_it_is_no_link_where_that_does_not_exist_for_whoever_looks(
    prepared: PreparedService, tmp_path: Path
) -> None:
    ann = Principal("ann", Role.OPERATE, organisation="acme")
    prepared.access.as_(ann)[Specialists].register(card("secretive", visibility="private"))
    task = prepared.access.as_(ann)[Tasks].submit(spec("it", specialist="secretive")).id
    prepared.world.router.route()
    made = prepared.world.tokens.create(TokenRequest(name="bob", role="read", organisation="acme"))
    with running(prepared, tmp_path / "state") as daemon:
        page = log_in(daemon, made.token).get(f"/tasks/{task}")
    assert page.status == 200
    assert "/specialists/secretive" not in page.body.decode()
    assert "Specialists compared" not in text_of(page)


def test_commands_in_why_are_code_and_what_strangers_wrote_is_no_tag(
    operator: Visitor, prepared: PreparedService
) -> None:
    task = prepared.add("it", NeedsInput(InputKind.APPROVAL))
    page = operator.get(f"/tasks/{task}").body.decode()
    why = page[page.index('id="why-title"') :].partition("</section>")[0]
    assert "<code>claudomator approve it</code>" in why
    assert "`" not in why


def test_forms_offer_a_choice_of_specialist_only_where_there_is_one(
    operator: Visitor, prepared: PreparedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks, failed = prepared.add("asks", NeedsInput(InputKind.APPROVAL)), prepared.add("failed", Failed(Reason.TIMEOUT))

    def offered() -> list[bool]:
        forms = (f"/tasks/{asks}/approve", f"/tasks/{failed}/restart")
        return ['name="specialist"' in operator.get(form).body.decode() for form in forms]

    assert offered() == [False, False]
    prepared.world.specialists.register(card("painter"))
    assert offered() == [True, True]
    monkeypatch.setattr(prepared.world.access[PolicyService], "reviews", lambda: False)  # as with `preset: none`
    assert offered() == [False, False]


def test_a_question_is_answered_on_the_page_of_its_task(operator: Visitor, prepared: PreparedService) -> None:
    task = prepared.add("it", NeedsInput(InputKind.QUESTION))
    prepared.add_run(task)
    prepared.move(task, NeedsInput(InputKind.QUESTION), result_text="Which one?")
    page = operator.get(f"/tasks/{task}")
    assert f'action="/tasks/{task}/answer"' in page.body.decode()
    fields = {"version": hidden(page, "version"), "text": "The blue one.\r\nNot the red one.\r\n"}
    answer = operator.post(f"/tasks/{task}/answer", fields)
    assert (answer.status, answer.headers["location"]) == (303, f"/tasks/{task}")
    resumption = resumption_of(prepared.database.read(lambda connection: task_rows.get(connection, task)))
    assert resumption is not None
    assert [said.answer for said in resumption.heard] == ["The blue one.\nNot the red one."]
    assert f'action="/tasks/{task}/answer"' not in operator.get(f"/tasks/{task}").body.decode()
