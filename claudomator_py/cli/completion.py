"""Shell completion with names from a running daemon. After an error, or a second, it completes nothing."""

from collections.abc import Callable, Iterable
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


def tasks(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete a task: by name, newest first, and by id from four characters on."""

    def known(client: "Client") -> Iterable[tuple[str, str]]:
        # Filtered by the daemon, as an older task would be missing among the newest.
        named = client.tasks(TaskFilter(text=incomplete or None), limit=_MAX_OFFERED).items
        yield from {task.name: task.state for task in reversed(named)}.items()
        if len(incomplete) >= _LEAST_OF_ID:
            begun = [task for task in client.tasks(limit=_MAX_OFFERED).items if task.id.startswith(incomplete.lower())]
            matches = begun if begun or named else [client.task(incomplete)]
            yield from ((task.id, f"{task.name}, {task.state}") for task in matches)

    return _completed(ctx, incomplete, known)


def tags(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete a tag of one of the newest tasks."""

    def known(client: "Client") -> Iterable[tuple[str, str]]:
        return {tag: "" for task in client.tasks(limit=_MAX_OFFERED).items for tag in task.tags}.items()

    return _completed(ctx, incomplete, known)


def decisions(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the id of a decision."""

    def known(client: "Client") -> Iterable[tuple[str, str]]:
        return (
            (decision.id, f"{decision.kind} {decision.task_name or ''}")
            for decision in client.decisions(limit=_MAX_OFFERED).items
        )

    return _completed(ctx, incomplete, known)


def tokens(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the name of a token."""
    return _completed(ctx, incomplete, lambda client: ((token.name, token.role) for token in client.tokens()))


def sessions(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the id of a browser session."""
    return _completed(ctx, incomplete, lambda client: ((session.id, session.browser) for session in client.sessions()))


def agents(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the name of an agent."""
    return _completed(ctx, incomplete, lambda client: ((agent.name, agent.kind) for agent in client.agents()))


def specialists(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the id of a specialist."""

    def known(client: "Client") -> Iterable[tuple[str, str]]:
        return ((specialist.id, specialist.name) for specialist in client.specialists(limit=_MAX_OFFERED).items)

    return _completed(ctx, incomplete, known)


def schedules(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the name of a schedule."""
    return _completed(
        ctx, incomplete, lambda client: ((schedule.name, schedule.schedule) for schedule in client.schedules())
    )


def channels(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the name of a channel."""

    def known(client: "Client") -> Iterable[tuple[str, str]]:
        return ((channel.name, "") for channel in client.channels(limit=_MAX_OFFERED).items)

    return _completed(ctx, incomplete, known)


def branches(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete a branch of the repository of the task that the command names, as far as tasks work on it or began at
    it."""

    def known(client: "Client") -> Iterable[tuple[str, str]]:
        views = client.branches()
        # Without its value, the option ends parsing, and the task stays among the arguments.
        tasks = {ctx.params.get("task"), *ctx.args}
        named = [view.repository for view in views if tasks & {view.task_name, view.task_id}]
        there = [view for view in views if view.repository in named or not named]
        began_at = {view.onto: "" for view in there if view.onto is not None}
        return (began_at | {view.branch: view.task_name for view in there}).items()

    return _completed(ctx, incomplete, known)


def _completed(
    ctx: typer.Context, incomplete: str, known: "Callable[[Client], Iterable[tuple[str, str]]]"
) -> Completions:
    try:
        with _client(ctx.params) as client:
            return [
                (word, help_text) for word, help_text in known(client) if word.lower().startswith(incomplete.lower())
            ]
    except Exception:
        return []


def _client(params: dict[str, Any]) -> "Client":
    from claudomator_py.imports import bulk_import, hiding

    with hiding("click"), bulk_import():  # as in ``cli.connect``
        from claudomator_py.client import http

    config, state_dir = (Path(given) if (given := params.get(name)) else None for name in ("config", "state_dir"))
    return http.connect(config, state_dir, timeout_s=_TIMEOUT_S)
