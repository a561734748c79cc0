"""The Gemini CLI itself as the classifier, against a fake of its service: a tier, or a cause, and never later."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.classify import GeminiCli
from claudomator_py.domain.agent import Tier
from claudomator_py.scheduler.classification import Cause, ModelFault, TierQuestion, parse_answer, tier_question
from tests.e2e.scenarios_support import document, ended, in_state, why
from tests.e2e.site import Site, open_site
from tests.fakes.decisions import classification_of
from tests.fakes.gemini_api import (
    GeminiApi,
    capacity_used_up,
    daily_quota_used_up,
    overloaded,
    throttled,
    unauthorized,
)
from tests.fakes.http_api import Hang, Step, Text
from tests.patience import wait_until
from tests.real_clis.clis import GEMINI, NOBODY, bare, private
from tests.real_clis.place import END_S

pytestmark = GEMINI.marks

QUESTION = TierQuestion("fix-login", "Find out why.", "claude", {Tier.FAST: "haiku", Tier.POWERFUL: "opus"})
ANSWER = Text('{"agent_type": "claude", "tier": "powerful", "reason": "the cause is not known"}')
MODELS = {"fast": "small", "balanced": "middle", "powerful": "large"}
# Long enough to hear what goes wrong, short of the minutes for which it would go on.
TIMEOUT_S = 30
PATIENCE_S = 60
# Far short of the timeout, which ends it, too.
STOP_S = 5


@pytest.fixture
def api() -> Iterator[GeminiApi]:
    with GeminiApi(ANSWER) as opened:
        yield opened


@pytest.fixture
def classifier(api: GeminiApi, tmp_path: Path) -> Iterator[GeminiCli]:
    GEMINI.settle_in(tmp_path)
    opened = GeminiCli(
        "gemini-3.5-flash-lite",
        [str(GEMINI.program)],
        {**bare(tmp_path), **GEMINI.env(api.origin), **GEMINI.key},
    )
    yield opened
    opened.close()
    until_nobody_lives_in(tmp_path)


def patient(home: Path) -> None:
    """As it is without settings of its user's: it asks ten times, for minutes."""
    settings = home / ".gemini" / "settings.json"
    document = json.loads(settings.read_text())
    del document["general"]
    settings.write_text(json.dumps(document))


def until_nobody_lives_in(home: Path) -> None:
    """It is killed by then; the system takes a moment to take it apart."""
    wait_until(lambda: not living_in(home), "the end of the CLI")


def living_in(home: Path) -> list[str]:
    """The processes whose home that is."""
    results = []
    for process in Path("/proc").iterdir():
        try:
            if f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                results.append((process / "cmdline").read_text())
        except OSError:
            continue
    return results


def fault(classifier: GeminiCli, timeout_s: float = TIMEOUT_S) -> ModelFault:
    with pytest.raises(ModelFault) as raised:
        classifier.ask(tier_question(QUESTION), timeout_s)
    return raised.value


def test_it_gives_a_tier(classifier: GeminiCli, api: GeminiApi) -> None:
    answer = parse_answer(classifier.ask(tier_question(QUESTION), PATIENCE_S), QUESTION)

    assert (answer.tier, answer.reason) == (Tier.POWERFUL, "the cause is not known")
    (asked,) = api.requests
    assert "flash-lite" in asked.path
    assert "Find out why." in str(asked.body["contents"])


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (throttled(), Cause.LIMITED),
        (daily_quota_used_up(), Cause.LIMITED),
        (overloaded(), Cause.SERVER_ERROR),
        (unauthorized(), Cause.REFUSED),
    ],
    ids=["throttled", "day", "overloaded", "key"],
)
def test_a_service_that_refuses_is_a_cause(classifier: GeminiCli, api: GeminiApi, step: Step, cause: Cause) -> None:
    api.script(step)
    assert fault(classifier, PATIENCE_S).cause is cause


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (throttled(), Cause.LIMITED),
        (capacity_used_up(5 * 3600, "5h"), Cause.LIMITED),
        (overloaded(), Cause.SERVER_ERROR),
        (Hang(), Cause.TIMEOUT),
        # Each word is another one: it ends an answer that repeats itself.
        (Text(" ".join(map(str, range(2000))), pause=0.1), Cause.TIMEOUT),
    ],
    ids=["throttled", "asleep", "overloaded", "silent", "dripping"],
)
def test_what_it_would_wait_out_ends_at_the_timeout(
    classifier: GeminiCli, api: GeminiApi, tmp_path: Path, step: Step, cause: Cause
) -> None:
    patient(tmp_path)
    api.script(step)
    began = time.monotonic()
    assert fault(classifier).cause is cause
    assert time.monotonic() - began < TIMEOUT_S + PATIENCE_S / 2, "it waited for the CLI to give up"
    until_nobody_lives_in(tmp_path)


def test_a_service_that_is_down_is_a_cause(classifier: GeminiCli, api: GeminiApi, tmp_path: Path) -> None:
    patient(tmp_path)
    down = GeminiCli(classifier.model, [str(GEMINI.program)], {**bare(tmp_path), **GEMINI.env(NOBODY), **GEMINI.key})
    assert fault(down).cause is Cause.UNREACHABLE
    until_nobody_lives_in(tmp_path)
    assert api.heard == 0


def test_without_a_login_it_is_refused(api: GeminiApi, tmp_path: Path) -> None:
    nobody = GeminiCli("gemini-3.5-flash-lite", [str(GEMINI.program)], {**bare(tmp_path), **GEMINI.env(api.origin)})
    assert fault(nobody, PATIENCE_S).cause is Cause.REFUSED
    assert api.heard == 0


@pytest.fixture
def site(api: GeminiApi, tmp_path: Path) -> Iterator[Site]:
    """A site with that classifier and one agent."""
    with open_site(tmp_path / "site") as opened:
        GEMINI.settle_in(opened.root / "home")
        configure(opened, f"{PATIENCE_S}s")
        yield opened


def configure(site: Site, timeout: str) -> None:
    site.configure(
        classifier={"kind": "gemini-cli", "command": [str(GEMINI.program)], "timeout": timeout},
        agents={"sim": {"kind": "simulated", "auto_select": True, "models": MODELS}},
    )


def environ(site: Site, api: GeminiApi) -> dict[str, str]:
    """What the user's shell has when the daemon is started."""
    return {**private(site.root / "home"), **GEMINI.env(api.origin), **GEMINI.key}


def asking(site: Site) -> list[str]:
    """The processes of the CLI."""
    return [command for command in living_in(site.root / "home") if str(GEMINI.program) in command]


def drop(site: Site, name: str) -> None:
    site.drop(f"{name}.yaml", document(None, "simulate: delay=0s", agent=None))


def test_through_the_daemon_it_decides_the_model(site: Site, api: GeminiApi) -> None:
    daemon = site.start(**environ(site, api)).ready()
    drop(site, "hard")

    task = ended(daemon, "hard", END_S)

    assert (task.state, task.tier, task.model) == ("COMPLETED", "powerful", "large")
    text = "the cause is not known; it named the agent claude, which changes nothing"
    assert f"Tier powerful (large): as the classifier says ({text})." in why(daemon, "hard")
    wait_until(lambda: not asking(site), "the end of the CLI")


@pytest.mark.parametrize(
    ("step", "cause", "sentence"),
    [
        (throttled(), "limited", "the classifier is rate-limited"),
        (overloaded(), "server_error", "the classifier failed"),
        (Text("I would rather not say."), "garbage", "the classifier's answer could not be read"),
        (Text('{"tier": "ultra"}'), "disallowed", "the classifier named a tier it was not offered"),
        (Hang(), "timeout", "the classifier did not answer in time"),
    ],
    ids=["limited", "down", "garbage", "lying", "silent"],
)
def test_through_the_daemon_no_fault_costs_more_than_the_default(
    site: Site, api: GeminiApi, step: Step, cause: str, sentence: str
) -> None:
    if isinstance(step, Hang):
        configure(site, "5s")
    api.script(step)
    daemon = site.start(**environ(site, api)).ready()
    drop(site, "hard")

    task = ended(daemon, "hard", END_S)

    assert (task.state, task.tier, task.model) == ("COMPLETED", "balanced", "middle")
    classification = classification_of(daemon.client.why("hard").decisions[0])
    assert (classification.source, classification.cause) == ("default", cause)
    assert f"Tier balanced (middle): the agent's default ({sentence}" in why(daemon, "hard")
    wait_until(lambda: not asking(site), "the end of the CLI")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_daemon_that_ends_leaves_no_question_running(site: Site, api: GeminiApi, end: str) -> None:
    configure(site, "20s")
    api.script(Hang())
    daemon = site.start(**environ(site, api)).ready()
    drop(site, "hard")
    in_state(daemon, "hard", "QUEUED")
    wait_until(lambda: api.requests, "the question", END_S)

    assert asking(site)
    if end == "stop":
        assert daemon.stop() == 0
        wait_until(lambda: not asking(site), "the end of the question", STOP_S)
    else:
        daemon.kill()
        wait_until(lambda: not asking(site), "the end of the question", PATIENCE_S)
