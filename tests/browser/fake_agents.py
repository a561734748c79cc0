"""Programs that print what Claude Code and Codex print, and do what a script says: real runs without a model.

Usage: ``python fake_agents.py claude|codex SCRIPTS ...``. SCRIPTS is a JSON file: the first line of a task's
instructions, and what its runs do, an attempt each, the last for all further ones. Other arguments are ignored.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

MODELS: Final = {"claude": "claude-sonnet-5-5", "codex": "gpt-5.5"}
DOLLARS_PER_TOKEN: Final = 0.000004
USED_UP_S: Final = 200.0
"""After which the five hours of an account are used up."""
RESETS_S: Final = 6_000.0
"""After which they reset."""


def main() -> int:
    """Act as the program that the first argument names, and return the exit code."""
    kind, scripts = sys.argv[1], Path(sys.argv[2])
    if "--version" in sys.argv:
        sys.stdout.write({"claude": "2.1.330 (Claude Code)\n", "codex": "codex-cli 0.169.0\n"}[kind])
        return 0
    prompt = sys.stdin.read()
    known: dict[str, list[dict[str, Any]]] = json.loads(scripts.read_text())
    nothing: list[dict[str, Any]] = [{}]
    steps = next((known[line] for line in prompt.splitlines() if line in known), nothing)
    attempt = int(os.environ.get("CLAUDOMATOR_ATTEMPT", "1"))
    step = steps[min(attempt, len(steps)) - 1]
    session = next((sys.argv[at + 1] for at, word in enumerate(sys.argv) if word in ("--session-id", "--resume")), "-")
    return (_claude if kind == "claude" else _codex)(step, session)


def _claude(step: dict[str, Any], session: str) -> int:
    emit(type="system", subtype="init", session_id=session, model=MODELS["claude"], permissionMode="acceptEdits")
    if step.get("limit"):
        emit(type="rate_limit_event", rate_limit_info=_windows(1.0, "rejected"))
        message = "Claude AI usage limit reached"
        block = [{"type": "text", "text": message}]
        emit(
            type="assistant",
            message={"model": "<synthetic>", "content": block},
            error="rate_limit",
            api_error_status=429,
            session_id=session,
        )
        return _result(step, session, message, error=True)
    for number, (tool, given, answer) in enumerate(step.get("tools", [])):
        time.sleep(step.get("pause_s", 0))
        call = f"toolu_{number}"
        block = [{"type": "tool_use", "id": call, "name": tool, "input": given}]
        emit(type="assistant", message=_message(step, number, block), session_id=session)
        content = [{"type": "tool_result", "tool_use_id": call, "content": answer}]
        emit(type="user", message={"content": content}, session_id=session)
    _work(step)
    share = min(1.0, 0.1 + (time.time() - _begun_s()) / USED_UP_S)
    emit(type="rate_limit_event", rate_limit_info=_windows(share, "allowed"))
    text = step.get("text", "Done.")
    if step.get("fails"):
        return _result(step, session, step["fails"], error=True)
    emit(type="assistant", message=_message(step, 99, [{"type": "text", "text": text}]), session_id=session)
    return _result(step, session, text)


def _message(step: dict[str, Any], number: int, content: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": step.get("tokens", 9_000) // 4, "output_tokens": 40}
    return {"id": f"msg_{number}", "model": MODELS["claude"], "content": content, "usage": usage}


def _begun_s() -> float:
    """Return when the night began: windows are the same for all runs of an account."""
    return Path(sys.argv[2]).stat().st_mtime


def _windows(share: float, status: str) -> dict[str, Any]:
    resets, weekly = int(_begun_s() + RESETS_S), int(_begun_s() + 3.4 * 86400)
    windows = {
        "five_hour": {"utilization": share, "resetsAt": resets, "status": status},
        "seven_day": {"utilization": 0.4 + share / 5, "resetsAt": weekly, "status": "allowed"},
    }
    return {"status": status, "resetsAt": resets, "rateLimitType": "five_hour", "unifiedWindows": windows}


def _result(step: dict[str, Any], session: str, text: str, *, error: bool = False) -> int:
    given, made = step.get("tokens", 9_000), step.get("tokens", 9_000) // 12
    asked = step.get("question")
    denied = []
    if asked:
        options = [{"label": label} for label in step.get("options", [])]
        questions = {"questions": [{"question": asked, "options": options}]}
        denied = [{"tool_name": "AskUserQuestion", "tool_use_id": "toolu_ask", "tool_input": questions}]
    used = {MODELS["claude"]: {"inputTokens": given, "outputTokens": made, "costUSD": given * DOLLARS_PER_TOKEN}}
    emit(
        type="result",
        subtype=step.get("subtype", "error_during_execution") if error else "success",
        is_error=error,
        result=text,
        session_id=session,
        num_turns=1 + len(step.get("tools", [])),
        total_cost_usd=0 if step.get("limit") else given * DOLLARS_PER_TOKEN,
        usage={"input_tokens": given, "output_tokens": made},
        modelUsage={} if step.get("limit") else used,
        permission_denials=denied,
        stop_reason="end_turn",
    )
    return 1 if error else 0


def _codex(step: dict[str, Any], _: str) -> int:
    emit(type="thread.started", thread_id="01a1ffd5-0a48-7893-b4ef-414b54faaf20")
    emit(type="turn.started")
    if step.get("limit"):
        at = time.strftime("%-I:%M %p", time.localtime(_begun_s() + 1.5 * RESETS_S))
        message = f"You\u2019ve hit your usage limit. Try again at {at}."
        emit(type="error", message=message)
        emit(type="turn.failed", error={"message": message})
        return 1
    for number, (_tool, given, answer) in enumerate(step.get("tools", [])):
        time.sleep(step.get("pause_s", 0))
        item = {"id": f"item_{number}", "type": "command_execution", "command": given.get("command", "ls")}
        emit(type="item.completed", item={**item, "aggregated_output": answer, "exit_code": 0, "status": "completed"})
    _work(step)
    if step.get("fails"):
        emit(type="error", message=step["fails"])
        emit(type="turn.failed", error={"message": step["fails"]})
        return 1
    text = step.get("text", "Done.")
    emit(type="item.completed", item={"id": "item_9", "type": "agent_message", "text": text})
    given = step.get("tokens", 9_000)
    emit(type="turn.completed", usage={"input_tokens": given, "cached_input_tokens": 0, "output_tokens": given // 12})
    return 0


def _work(step: dict[str, Any]) -> None:
    for name, content in step.get("files", {}).items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
    subject = step.get("commit")
    if subject:
        author = re.sub(r"\W", "", step.get("author", "Claude"))
        names = ["-c", f"user.name={author}", "-c", f"user.email={author.lower()}@example.org"]
        for words in (["add", "--all"], [*names, "commit", "-q", "-m", subject]):
            subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL)
    time.sleep(step.get("takes_s", 0))


def emit(**event: Any) -> None:
    """Print an event, at once."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
