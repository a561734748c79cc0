"""What a person is asked, as it is shown: its shape, and sentences that say what to do about it."""

from collections.abc import Sequence

from claudomator_py.domain.inputs import InputRequest, grant_text
from claudomator_py.domain.lifecycle import InputKind
from claudomator_py.domain.outcome import Denied
from claudomator_py.queries.explain import clock_text, due_text, who
from claudomator_py.resources.runs.shape import InputView
from claudomator_py.store.tables import Event, Task
from claudomator_py.tasks.inputs import asked_before, asked_of

_FORGETTING = ("restart_requested", "content_changed")


def input_view(task: Task, now_ms: int) -> InputView | None:
    """What a person is asked; None unless the task needs input."""
    if task.state != "NEEDS_INPUT":
        return None
    asked = asked_of(task) or asked_before(task)
    kept = task.kept_until_ms if task.kept_until_ms is not None and task.kept_until_ms > now_ms else None
    return InputView.of(asked, text=asked.words, since=asked.since_ms, kept_until=kept, until=asked.until_ms)


def rejection(task: Task) -> str | None:
    """What the person said who rejected the task."""
    asked = asked_of(task)
    return None if asked is None else asked.rejected


def expiry(task: Task, now_ms: int) -> str | None:
    """What nobody did in time, of a task that failed for that."""
    asked = asked_of(task)
    if asked is None or asked.until_ms is None:
        return None
    due = clock_text(asked.until_ms, now_ms)
    if asked.kind is InputKind.APPROVAL:
        return f"Nobody approved it by {due}; it {asked.words}."
    return f"Nobody answered by {due}: {asked.words}"


def input_sentences(task: Task, events: Sequence[Event], now_ms: int, *, specialists: bool) -> list[str]:
    """What was said to it in this generation, and what to do if it asks. events: the task's, in order. specialists:
    whether there are any for whoever asks."""
    sentences: list[str] = []
    for event in events:
        if event.kind in _FORGETTING:
            sentences.clear()
        elif event.kind == "answered":
            sentences.append(f"{who(event)} answered: {event.data.get('answer') or event.data['meant']}")
        elif event.kind == "approved":
            what = ", ".join(map(grant_text, event.data.get("tools", ()))) or "its first run"
            what += "".join(f", and `{command}`" for command in event.data.get("commands", ()))
            why = f": {event.data['why']}" if event.data.get("why") else ""
            sentences.append(f"{who(event)} approved {what}{why}.")
    if task.state == "NEEDS_INPUT":
        asked = asked_of(task) or asked_before(task)
        sentences += _remedies(task, asked, specialists=specialists)
        if asked.until_ms is not None:
            sentences.append(f"If nobody does by {due_text(asked.until_ms, now_ms)}, it fails: expired.")
        if task.kept_until_ms is not None and task.kept_until_ms > now_ms:
            until = clock_text(task.kept_until_ms, now_ms)
            sentences.append(f"No other task works in {task.dir_key} until {until}, or until it continues.")
    return sentences


def _allowing(call: Denied) -> str:
    """What approving it allows, in words."""
    words = grant_text(call.rule or "")
    return words if call.beyond is None else f"exactly {words}, as {call.beyond}"


def _remedies(task: Task, asked: InputRequest, *, specialists: bool) -> list[str]:
    name = task.name
    reject = f"`claudomator reject {name}` ends it."
    match asked.kind:
        case InputKind.APPROVAL if asked.run_id is None:
            lets = "lets it start"
            if asked.commands:
                lets += f" and run {', '.join(f'`{one}`' for one in asked.commands)} in its directory"
            if specialists and task.specialist is None:
                lets += ", `--specialist ID` also says who does it"
            return [f"`claudomator approve {name}` {lets}; {reject}"]
        case InputKind.APPROVAL if asked.asks_to_continue:
            instead = f'`claudomator answer {name} "..."` also says how'
            return [f"`claudomator approve {name}` has {asked.agent} continue it; {instead}; {reject}"]
        case InputKind.APPROVAL:
            rules = list(dict.fromkeys(_allowing(one) for one in asked.tools if one.rule is not None))
            without = next((one.tool for one in asked.tools if one.rule is None), None)
            allows = f"`claudomator approve {name}` allows {', '.join(rules)}"
            if without is not None:
                allows = (
                    f"Nothing allows that call alone; `claudomator approve {name} --tool {without}` allows {without}"
                )
            instead = f'`claudomator answer {name} "..."` tells {asked.agent} to do without'
            return [f"{allows}; {instead}; {reject}"]
        case InputKind.CLARIFICATION if asked.run_id is None:
            gives = f"`claudomator answer {name} SPECIALIST` gives it to that one, and a sentence adds to the task"
            return [f"{gives}; {reject}"]
        case InputKind.LOGIN:
            return [f"Log in, then: claudomator release {asked.agent or 'AGENT'}"]
        case _:
            agent = asked.agent or "its agent"
            return [f'`claudomator answer {name} "..."` continues the conversation of {agent} with it; {reject}']
