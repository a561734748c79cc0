"""What every way to ask for a tier has in common: an answer's text, or a fault with its cause, and never later."""

import json
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudomator_py.classify import GeminiCli
from claudomator_py.classify.http import GeminiApi, OpenAiApi
from claudomator_py.domain.agent import Tier
from claudomator_py.scheduler.classification import Cause, ModelFault, TierQuestion, parse_answer, tier_question
from tests.fakes.tier_server import TierServer, hangs, hangs_up, says, status, tier

QUESTION = TierQuestion("fix-login", "Find out why.", "claude", {Tier.FAST: "haiku", Tier.POWERFUL: "opus"})
HttpClassifier = GeminiApi | OpenAiApi
Make = Callable[[str], HttpClassifier]


@pytest.fixture
def server() -> Iterator[TierServer]:
    with TierServer(tier("fast")) as running:
        yield running


@pytest.fixture(params=["gemini-api", "openai"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[HttpClassifier] = []

    def build(url: str) -> HttpClassifier:
        kind = GeminiApi if request.param == "gemini-api" else OpenAiApi
        made.append(kind("lite", url, "the-key"))
        return made[-1]

    yield build
    for entry in made:
        entry.close()


def test_it_asks_with_key_schema_and_question_and_gives_the_text(server: TierServer, make: Make) -> None:
    text = make(server.url).ask(tier_question(QUESTION), 5)

    assert parse_answer(text, QUESTION).tier is Tier.FAST
    (asked,) = server.asked
    assert "Find out why." in asked.prompt
    assert '"enum": ["fast", "powerful"]' in json.dumps(asked.body)
    assert "the-key" in (asked.headers.get("x-goog-api-key") or asked.headers.get("authorization") or "")
    assert "the-key" not in asked.path


@pytest.mark.parametrize(
    ("code", "cause"),
    [(400, Cause.REFUSED), (401, Cause.REFUSED), (404, Cause.REFUSED), (429, Cause.LIMITED), (500, Cause.SERVER_ERROR)],
)
def test_an_http_error_is_a_fault_with_its_cause(server: TierServer, make: Make, code: int, cause: Cause) -> None:
    server.behaviour = status(code)
    with pytest.raises(ModelFault) as fault:
        make(server.url).ask(tier_question(QUESTION), 5)
    assert fault.value.cause is cause


def test_a_transient_fault_is_tried_again_inside_the_time(server: TierServer, make: Make) -> None:
    def once_overloaded(exchange: object) -> None:
        behaviour = status(503) if len(server.asked) == 1 else tier("powerful")
        behaviour(server.asked[-1])

    server.behaviour = once_overloaded
    assert parse_answer(make(server.url).ask(tier_question(QUESTION), 5), QUESTION).tier is Tier.POWERFUL
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("header", "seconds"), [("90", 90.0), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)]
)
def test_a_limit_is_not_tried_again_and_says_for_how_long(
    server: TierServer, make: Make, header: str | None, seconds: float | None
) -> None:
    server.behaviour = status(429, {"Retry-After": header} if header is not None else {})
    with pytest.raises(ModelFault) as fault:
        make(server.url).ask(tier_question(QUESTION), 5)
    assert (len(server.asked), fault.value.retry_after_s) == (1, seconds)


def test_a_server_that_does_not_answer_is_a_timeout(server: TierServer, make: Make) -> None:
    server.behaviour = hangs(server.closing)
    with pytest.raises(ModelFault) as fault:
        make(server.url).ask(tier_question(QUESTION), 0.2)
    assert fault.value.cause is Cause.TIMEOUT


def test_a_server_that_drips_its_answer_is_a_timeout(server: TierServer, make: Make) -> None:
    def drip(exchange: object) -> None:
        asked = server.asked[-1]
        asked.close_connection = True
        asked.send_response(200)
        asked.end_headers()
        while not server.closing.wait(0.02):
            asked.wfile.write(b" ")
            asked.wfile.flush()

    server.behaviour = drip
    with pytest.raises(ModelFault) as fault:
        make(server.url).ask(tier_question(QUESTION), 0.3)
    assert fault.value.cause is Cause.TIMEOUT


def test_a_broken_connection_and_no_server_are_unreachable(server: TierServer, make: Make) -> None:
    server.behaviour = hangs_up
    with pytest.raises(ModelFault) as fault:
        make(server.url).ask(tier_question(QUESTION), 2)
    assert fault.value.cause is Cause.UNREACHABLE
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ModelFault) as fault:
            make(url).ask(tier_question(QUESTION), 2)
    assert fault.value.cause is Cause.UNREACHABLE


@pytest.mark.parametrize("document", [[], {}, {"candidates": []}, {"choices": [{}]}, {"choices": "x"}, "text", None, 3])
def test_an_answer_of_another_shape_is_garbage(server: TierServer, make: Make, document: object) -> None:
    server.behaviour = lambda exchange: exchange.send_json(200, document)
    with pytest.raises(ModelFault) as fault:
        make(server.url).ask(tier_question(QUESTION), 5)
    assert fault.value.cause is Cause.GARBAGE


def test_prose_comes_through_for_the_parser_to_judge(server: TierServer, make: Make) -> None:
    server.behaviour = says("I would rather not.")
    assert make(server.url).ask(tier_question(QUESTION), 5) == "I would rather not."


def test_no_key_is_said_before_anything_is_sent(server: TierServer) -> None:
    classifier = GeminiApi("lite", server.url, "")
    with pytest.raises(ModelFault) as fault:
        classifier.ask(tier_question(QUESTION), 5)
    classifier.close()
    assert fault.value.cause is Cause.NOT_CONFIGURED
    assert server.asked == []


def cli(folder: Path, script: str) -> GeminiCli:
    """A program in the place of the Gemini CLI."""
    program = folder / "gemini"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return GeminiCli("lite", [str(program)], {"PATH": "/usr/bin:/bin", "HOME": str(folder)})


def test_the_cli_reads_the_question_on_stdin_and_its_output_is_the_answer(tmp_path: Path) -> None:
    kept = f'cat > {tmp_path}/stdin; echo "$*" > {tmp_path}/argv; env > {tmp_path}/env'
    script = kept + """; echo noise; echo '{"session_id": "x", "response": "Well: {\\"tier\\": \\"fast\\"}"}'"""
    text = cli(tmp_path, script).ask(tier_question(QUESTION), 10)

    assert parse_answer(text, QUESTION).tier is Tier.FAST
    assert "Find out why." in (tmp_path / "stdin").read_text()
    assert "Find out why." not in (tmp_path / "argv").read_text()
    assert "GEMINI_CLI_NO_RELAUNCH=true" in (tmp_path / "env").read_text()


@pytest.mark.parametrize(
    "printed",
    [
        'Warning: {deprecated}\n{"response": "{\\"tier\\": \\"fast\\"}"}',
        '{"response": "{\\"tier\\": \\" FAST \\"}", "stats": {"models": {}}}\nDone in 1.2s.',
        'Loaded {1} extension: {"name": "x"}\n{\n "id": 1,\n "response": "Well: {\\"tier\\": \\"Fast\\"}"\n}\n}',
        '```json\n{"tier": "fast", "reason": "bare"}\n```',
    ],
)
def test_what_the_cli_prints_around_its_envelope_is_no_harm(tmp_path: Path, printed: str) -> None:
    (tmp_path / "printed").write_text(printed)
    text = cli(tmp_path, f"cat {tmp_path}/printed").ask(tier_question(QUESTION), 10)
    assert parse_answer(text, QUESTION).tier is Tier.FAST


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("exit 173", Cause.LIMITED),
        ("exit 41", Cause.REFUSED),
        ("exit 145", Cause.REFUSED),
        ("exit 247", Cause.SERVER_ERROR),
        ("exit 1", Cause.SERVER_ERROR),
        ("echo 'exception TypeError: fetch failed sending request' >&2; exit 1", Cause.UNREACHABLE),
        ("exit 127", Cause.NOT_CONFIGURED),
        ("""echo '{"response": null}'""", Cause.GARBAGE),
    ],
)
def test_the_ends_of_the_cli_are_faults(tmp_path: Path, script: str, cause: Cause) -> None:
    with pytest.raises(ModelFault) as fault:
        cli(tmp_path, script).ask(tier_question(QUESTION), 10)
    assert fault.value.cause is cause


def test_a_missing_cli_is_not_configured(tmp_path: Path) -> None:
    with pytest.raises(ModelFault) as fault:
        GeminiCli("lite", [str(tmp_path / "gemini")], {}).ask(tier_question(QUESTION), 10)
    assert fault.value.cause is Cause.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Attempt 1 failed with status 429. Retrying with backoff...", Cause.LIMITED),
        ("Attempt 1 failed: Your quota will reset after 5h.. Retrying after 21123482ms...", Cause.LIMITED),
        ("Attempt 1 failed with status 503. Retrying with backoff...", Cause.SERVER_ERROR),
        ("Attempt 1 failed. Retrying with backoff... Error: fetch failed sending request", Cause.UNREACHABLE),
    ],
)
def test_what_a_slow_cli_said_is_the_cause(tmp_path: Path, text: str, cause: Cause) -> None:
    with pytest.raises(ModelFault) as fault:
        cli(tmp_path, f"echo '{text}' >&2; exec sleep 60").ask(tier_question(QUESTION), 0.5)
    assert fault.value.cause is cause


def test_a_closed_classifier_ends_its_processes_and_starts_no_more(tmp_path: Path) -> None:
    classifier = cli(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    causes: list[Cause] = []

    def ask() -> None:
        with pytest.raises(ModelFault) as fault:
            classifier.ask(tier_question(QUESTION), 50)
        causes.append(fault.value.cause)

    asking = threading.Thread(target=ask)
    asking.start()
    waiting = threading.Event()
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n")):
        waiting.wait(0.01)

    classifier.close()
    asking.join()
    ask()

    assert causes == [Cause.INTERRUPTED, Cause.INTERRUPTED]
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/cwd").exists()


def test_a_slow_cli_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"{sys.executable} -c 'import time; time.sleep(60)' & echo $! > {pid_file}; wait"
    classifier = cli(tmp_path, script)
    with pytest.raises(ModelFault) as fault:
        classifier.ask(tier_question(QUESTION), 1.0)
    assert fault.value.cause is Cause.TIMEOUT
    ended = threading.Event()
    for _ in range(500):
        state = Path(f"/proc/{pid_file.read_text().strip()}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        ended.wait(0.01)
    else:
        pytest.fail("its child lives on")
