"""The simulated agent's program: a real process that follows a script and calls no model.

Usage: ``python -I -S program.py --conversation UUID [--resume] [--model NAME] [--allow TOOL]... < prompt``.
The script is the lines of the prompt that begin with ``simulate:``, else $CLAUDOMATOR_SIMULATED_SCRIPT, else a short
success. Each line is for one attempt ($CLAUDOMATOR_ATTEMPT, from 1), and the last line for all further ones. A
continued conversation remembers its prompts, and so its script, and goes on after the lines that it has used. It is
kept in .simulated/ in the working directory. A line has:

    delay=2s            work that long first
    tokens=100/50       input and output tokens to report, in proportion while it works
    cost=0.01           US dollars to report, likewise
    text="..."          the final answer
    write=NAME          write the text into this file of the working directory
    needs=TOOL          require that tool, such as shell(publish), in permissions.allowed_tools; without it the call is
                        denied, nothing is written, and the outcome stays the same
    linger=1m           after the result, stay silent that long before exiting
    outcome=...         success, fail, limited, limited(reset=10m), overloaded, network, auth, question,
                        crash (kill itself), hang (stay silent), flood (write without end),
                        ignore-term (stay silent, and ignore SIGTERM); no_credit, invalid_model, context_too_long,
                        refused, turn_limit, budget, permission_denied, output_limit, disk_full, unfinished, no_answer,
                        as a real agent reports them
    service=URL         then ask this address for the line to continue with, which may name one again: so several agents
                        can share an account. It gets JSON with task, run, attempt, conversation, resumed, turn, model
                        and prompt, and answers with a line of text; no answer is a network error

It uses the standard library only, and nothing of the package that it is part of, as it runs isolated. Nor does it
import ``dataclasses`` or ``typing``: every run starts it, and they take as long as everything else together.
"""

import argparse
import json
import os
import re
import shlex
import signal
import sys
import time
from pathlib import Path

DEFAULT_SCRIPT = "delay=200ms outcome=success"
MEMORY = ".simulated"
LABEL = "[simulated]"
SAID = {
    "no_credit": "that its credit is used up",
    "invalid_model": "that it does not know the model",
    "context_too_long": "that the conversation is too long",
    "refused": "that the model declines to do it",
    "turn_limit": "that its turns are used up",
    "budget": "that its budget is used up",
    "permission_denied": "that it was not allowed to use a tool",
    "output_limit": "that it wrote too much",
    "disk_full": "that there is no space left",
    "unfinished": "that its model was cut off",
    "no_answer": "that its model has said and done nothing",
}
OUTCOMES = (
    *("success", "fail", "limited", "overloaded", "network", "auth", "question"),
    *("crash", "hang", "flood", "ignore-term"),
    *SAID,
)
KEYS = ("delay", "tokens", "cost", "text", "write", "needs", "linger", "outcome", "service")
ERRORS = {
    "fail": "the script says that it fails",
    "limited": "the script says that its quota is used up",
    "overloaded": "the script says that its service is at capacity",
    "network": "the script says that its service cannot be reached",
    "auth": "the script says that it is not logged in",
    **{outcome: f"the script says {what}" for outcome, what in SAID.items()},
}
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LINE = re.compile(r"^[ \t]*simulate:[ \t]*(.*)$", re.MULTILINE)
_SERVICE_S = 30
_MAX_ANSWER = 10_000
_OUTCOME = re.compile(r"([a-z_-]+)(?:\(reset=([^)]+)\))?")


class ScriptError(Exception):
    """The script has an unknown key or an invalid value."""


class Unreachable(Exception):
    """The script's service does not answer."""


class Step:
    """What one attempt does, with the defaults. Times in seconds."""

    delay: float = 0.0
    tokens: tuple[int, int] | None = None
    cost: float | None = None
    text: str = "done"
    write: str | None = None
    needs: str | None = None
    linger: float = 0.0
    outcome: str = "success"
    reset: float | None = None
    service: str | None = None


def main() -> int:
    """Follow the script, and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversation", required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--model")
    parser.add_argument("--allow", action="append", default=[])
    given = parser.parse_args()
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    attempt = os.environ.get("CLAUDOMATOR_ATTEMPT", "1")
    remembered = recall(given.conversation) if given.resume else []
    emit(
        type="start",
        conversation_id=given.conversation,
        resumed=given.resume,
        remembered=remembered,
        model=given.model,
        attempt=attempt,
    )
    if remembered is None:
        end(outcome="unknown", error=f"{LABEL} there is no conversation {given.conversation} in {Path.cwd()}")
        return 2
    prompts = [*remembered, prompt]
    remember(given.conversation, prompts)
    try:
        line = line_for(
            prompts, os.environ.get("CLAUDOMATOR_SIMULATED_SCRIPT"), int(attempt) if attempt.isdecimal() else 1
        )
        step = perform(parse(line), given.allow)
        reply = {"conversation": given.conversation, "resumed": given.resume, "model": given.model, "prompt": prompt}
        turn = 0
        while step.service is not None:
            turn += 1
            answer = ask(step.service, {**reply, "attempt": attempt, "turn": turn})
            step = perform(parse(answer), given.allow)
    except Unreachable as error:
        end(outcome="network", error=f"{LABEL} {error}")
        return 1
    except (ScriptError, OSError) as error:
        end(outcome="invalid", error=f"{LABEL} {error}")
        return 2
    return finish(step)


def perform(step: Step, allowed: list[str]) -> Step:
    """Do everything that comes before the outcome."""
    wait(step)
    if step.needs is not None and step.needs not in allowed:
        tool, _, given = step.needs.removesuffix(")").partition("(")
        emit(type="denied", tool=tool, input=given, rule=step.needs)
    elif step.write is not None:
        write(step.write, step.text)
    return step


def ask(service: str, question: dict[str, object]) -> str:
    """Return the line that the service answers with. Raises ScriptError for an invalid address, and Unreachable."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    try:
        address = urlsplit(service)
        if address.scheme != "http" or not address.hostname:
            raise ValueError("it does not begin with http:// and a host")
        connection = HTTPConnection(address.hostname, address.port, timeout=_SERVICE_S)
    except ValueError as error:
        remedy = "write for example service=http://127.0.0.1:8000/home"
        raise ScriptError(f"{service!r} is no address: {error}; {remedy}") from error
    named = {"run": os.environ.get("CLAUDOMATOR_RUN"), "task": os.environ.get("CLAUDOMATOR_TASK")}
    body = json.dumps({**question, **named})
    try:
        connection.request("POST", address.path or "/", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise Unreachable(f"{service} answered {answer.status} {answer.reason}")
        return answer.read(_MAX_ANSWER).decode(errors="replace")
    except (OSError, HTTPException) as error:
        raise Unreachable(f"{service} did not answer: {error}") from error
    finally:
        connection.close()


def recall(conversation: str) -> list[str] | None:
    """Return the conversation's prompts, oldest first; None if it is unknown here."""
    try:
        known = json.loads(memory(conversation).read_text())
    except (OSError, ValueError):
        return None
    return [str(prompt) for prompt in known] if isinstance(known, list) else None


def remember(conversation: str, prompts: list[str]) -> None:
    """Keep the conversation if the working directory is writable; git is told to ignore it."""
    path = memory(conversation)
    try:
        path.parent.mkdir(exist_ok=True)
        (path.parent / ".gitignore").write_text("*\n")
        path.write_text(json.dumps(prompts))
    except OSError as error:
        sys.stderr.write(f"{LABEL} cannot remember the conversation: {error}\n")


def memory(conversation: str) -> Path:
    """Return the path of a conversation's file."""
    return Path(MEMORY, f"{re.sub('[^A-Za-z0-9-]', '_', conversation)}.json")


def line_for(prompts: list[str], script: str | None, attempt: int) -> str:
    """Return the line to follow, from the newest prompt that has any, else from the script. A new conversation begins
    at the line of its attempt; a continued one counts its own turns."""
    scripted = [number for number, prompt in enumerate(prompts) if _LINE.search(prompt)]
    begun = scripted[-1] if scripted else 0
    lines: list[str] = _LINE.findall(prompts[begun])
    turn = attempt if len(prompts) == 1 else len(prompts) - begun
    if not lines and script is not None:
        lines = [line.strip().removeprefix("simulate:") for line in script.splitlines() if line.strip()]
    return (lines or [DEFAULT_SCRIPT])[max(0, min(turn, len(lines) or 1) - 1)]


def parse(line: str) -> Step:
    """Return the step of a line. Raises ScriptError."""
    step = Step()
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ScriptError(f"cannot read {line!r}: {error}") from error
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ScriptError(f"{word!r} is not key=value; write for example: delay=2s outcome=success")
        set_field(step, key, value)
    return step


_EXAMPLES = {"tokens": "tokens=100/50", "cost": "cost=0.25"}
"""Examples of values that are plain numbers."""


def set_field(step: Step, key: str, value: str) -> None:
    """Set a field of the step. Raises ScriptError for an unknown key or an invalid value."""
    try:
        match key:
            case "delay" | "linger":
                setattr(step, key, seconds(value))
            case "tokens":
                given, written = value.split("/")
                step.tokens = (int(given), int(written))
            case "cost":
                step.cost = float(value)
            case "text" | "write" | "needs" | "service":
                setattr(step, key, value)
            case "outcome":
                set_outcome(step, value)
            case _:
                raise ScriptError(f"unknown key {key!r}; there are {', '.join(KEYS)}")
    except ValueError as error:
        raise ScriptError(f"{value!r} cannot be the value of {key}; write such as {_EXAMPLES[key]}") from error


def set_outcome(step: Step, value: str) -> None:
    """Set the outcome and the reset. Raises ScriptError."""
    match = _OUTCOME.fullmatch(value)
    if match is None or match[1] not in OUTCOMES:
        raise ScriptError(f"unknown outcome {value!r}; there are {', '.join(OUTCOMES)}")
    step.outcome = match[1]
    step.reset = seconds(match[2]) if match[2] is not None else None


def seconds(text: str) -> float:
    """Return a duration such as 200ms, 2s, 10m, 1h. Raises ScriptError."""
    match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", text)
    if match is None:
        raise ScriptError(f"{text!r} is not a duration; write for example 200ms, 2s or 10m")
    return int(match[1]) * _UNIT_S[match[2]]


def wait(step: Step) -> None:
    """Work for the step's delay, reporting every second what was used so far."""
    over = time.monotonic() + step.delay
    while (left := over - time.monotonic()) > 0:
        time.sleep(min(1.0, left))
        left = max(0.0, over - time.monotonic())
        emit(type="progress", seconds_left=round(left, 1), **used(step, 1 - left / step.delay))


def used(step: Step, share: float = 1.0) -> dict[str, object]:
    """Return the tokens and dollars to report, or that share of them."""
    value: dict[str, object] = {}
    if step.tokens is not None:
        value["tokens"] = {"input": int(step.tokens[0] * share), "output": int(step.tokens[1] * share)}
    if step.cost is not None:
        value["cost_usd"] = step.cost * share
    return value


def write(name: str, text: str) -> None:
    """Write a file in the working directory. Raises ScriptError for one elsewhere."""
    folder = Path.cwd().resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise ScriptError(f"{name!r} is not a file of the working directory; give a relative name")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def finish(step: Step) -> int:
    """End with the step's outcome, and return the exit code."""
    match step.outcome:
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            stay()
        case "flood":
            while True:
                emit(type="noise", text="simulated output " * 60)
        case "ignore-term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            emit(type="progress", ignoring="SIGTERM")
            stay()
    if step.outcome in ("success", "question"):
        end(outcome=step.outcome, text=f"{LABEL} {step.text}", **used(step))
        time.sleep(step.linger)
        return 0
    reset_at = None if step.reset is None else round((time.time() + step.reset) * 1000)
    end(outcome=step.outcome, error=f"{LABEL} {ERRORS[step.outcome]}", reset_at=reset_at, **used(step))
    return 1


def stay() -> None:
    """Do nothing until a signal ends the process."""
    while True:
        signal.pause()


def end(**fields: object) -> None:
    """Print the terminal event."""
    emit(type="end", **fields)


def emit(**fields: object) -> None:
    """Print an event at once."""
    sys.stdout.write(json.dumps({"simulated": True, **fields}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
