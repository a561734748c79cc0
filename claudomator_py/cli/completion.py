"""Shell completion with names from a running daemon. After an error, or a second, it completes nothing."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from claudomator_py.domain.requests import TaskFilter

if TYPE_CHECKING:
    from claudomator_py.client.http import Client

Completions = list[tuple[str, str]]
"""Words, each with a description."""

_TIMEOUT_S = 1.0
_MAX_OFFERED = 200
_LEAST_OF_ID = 4


class NamedThings:
    """Things of one kind that have names, as options and arguments that the shell completes."""

    def __init__(self, known: "Callable[[Client, str, typer.Context], Iterable[tuple[str, str]]]") -> None:
        """known: returns words with descriptions, of which those that begin with the incomplete word are offered."""
        self._known = known

    def option(self, help_text: str, *flags: str, metavar: str | None = None) -> Any:
        """Return an option that takes such a name. flags: the option's own names, if the parameter's is not to be."""
        return typer.Option(*flags, metavar=metavar, help=help_text, autocompletion=self.complete)

    def argument(self, metavar: str, help_text: str) -> Any:
        """Return an argument that takes such a name."""
        return typer.Argument(metavar=metavar, help=help_text, autocompletion=self.complete)

    def complete(self, ctx: typer.Context, incomplete: str) -> Completions:
        """Complete the word."""
        try:
            with _client(ctx.params) as client:
                known = self._known(client, incomplete, ctx)
                return [(word, described) for word, described in known if word.lower().startswith(incomplete.lower())]
        except Exception:
            return []


def _tasks(client: "Client", incomplete: str, _: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield tasks by name, newest first, and by id from four characters on."""
    # Filtered by the daemon, as an older task would be missing among the newest.
    named = client.tasks(TaskFilter(text=incomplete or None), limit=_MAX_OFFERED).items
    yield from {task.name: task.state for task in reversed(named)}.items()
    if len(incomplete) >= _LEAST_OF_ID:
        begun = [task for task in client.tasks(limit=_MAX_OFFERED).items if task.id.startswith(incomplete.lower())]
        matches = begun if begun or named else [client.task(incomplete)]
        yield from ((task.id, f"{task.name}, {task.state}") for task in matches)


def _branches(client: "Client", _: str, ctx: typer.Context) -> Iterable[tuple[str, str]]:
    """Return the branches of the repository of the task that the command names, as far as tasks work on them or began
    at them."""
    views = client.branches()
    # Without its value, the option ends parsing, and the task stays among the arguments.
    tasks = {ctx.params.get("task"), *ctx.args}
    named = [view.repository for view in views if tasks & {view.task_name, view.task_id}]
    there = [view for view in views if view.repository in named or not named]
    began_at = {view.onto: "" for view in there if view.onto is not None}
    return (began_at | {view.branch: view.task_name for view in there}).items()


TASKS = NamedThings(_tasks)
BRANCHES = NamedThings(_branches)
TAGS = NamedThings(
    lambda client, *_: {tag: "" for task in client.tasks(limit=_MAX_OFFERED).items for tag in task.tags}.items()
)
"""Those of the newest tasks."""
DECISIONS = NamedThings(
    lambda client, *_: (
        (decision.id, f"{decision.kind} {decision.task_name or ''}")
        for decision in client.decisions(limit=_MAX_OFFERED).items
    )
)
TOKENS = NamedThings(lambda client, *_: ((token.name, token.role) for token in client.tokens()))
SESSIONS = NamedThings(lambda client, *_: ((session.id, session.browser) for session in client.sessions()))
AGENTS = NamedThings(lambda client, *_: ((agent.name, agent.kind) for agent in client.agents()))
SPECIALISTS = NamedThings(
    lambda client, *_: ((card.id, card.name) for card in client.specialists(limit=_MAX_OFFERED).items)
)
SCHEDULES = NamedThings(lambda client, *_: ((schedule.name, schedule.schedule) for schedule in client.schedules()))
CHANNELS = NamedThings(lambda client, *_: ((channel.name, "") for channel in client.channels(limit=_MAX_OFFERED).items))


def _client(params: dict[str, Any]) -> "Client":
    from claudomator_py.imports import bulk_import, hiding

    with hiding("click"), bulk_import():  # as in ``cli.connect``
        from claudomator_py.client import http

    config, state_dir = (Path(given) if (given := params.get(name)) else None for name in ("config", "state_dir"))
    return http.connect(config, state_dir, timeout_s=_TIMEOUT_S)
