"""Tool calls as agents report them: what each does, on what, and whether it is allowed."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from claudomator_py.acts.shell import is_simple
from claudomator_py.json_fields import event_of, list_of, objects_of, text_of

OWN_SERVER: Final = "claudomator"
"""The name of the run's own MCP server."""
_MAX_CALLS: Final = 1_000
_COMMANDS: Final = ("command", "cmd", "commands")
_TELLING: Final = ("file_path", "filePath", "notebook_path", "path", "abs_path", "url", "query", "pattern")
_ACTS: Final = frozenset({"execute", "edit", "delete", "move"})
_RULE: Final = re.compile(r"(?P<tool>[^()]+)\((?P<subject>.*)\)", re.DOTALL)


class ToolCall:
    """A call, as far as it was reported. Some agents report it in pieces, and some ask before they report it. name: the
    agent's own name for the tool, if it gives one. printed: whether the call was printed."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.kind = ""
        self.title = ""
        self.name = ""
        self.given: Mapping[str, Any] = {}
        self.places: tuple[str, ...] = ()
        self.text = ""
        self.status = ""
        self.printed = False

    @property
    def open(self) -> bool:
        """Whether the call may still be running."""
        return self.status in ("", "pending", "in_progress")

    @property
    def tool(self) -> str:
        """The tool's name for people."""
        return self.name or self.kind or "tool"

    @property
    def command(self) -> str | None:
        """The command line that the call runs; None: not given."""
        commands = (_command(self.given.get(key)) for key in _COMMANDS)
        return next((words for words in commands if words is not None), None)

    @property
    def subject(self) -> str:
        """What the call is about: a command or a path, else its title."""
        if self.command is not None:
            return self.command
        for key in _TELLING:
            if isinstance(self.given.get(key), str):
                return str(self.given[key])
        return self.title or next(iter(self.places), "")

    def take(self, fields: Mapping[str, Any], kinds: Iterable[tuple[str, str]], *, given_as_text: bool = False) -> None:
        """Take a report of the call. kinds: (title pattern, kind) pairs for agents that give no kind. given_as_text:
        whether the text is its arguments until it runs."""
        self.title = text_of(fields, "title") or self.title
        self.kind = text_of(fields, "kind") or self.kind
        self.name = _own_name(fields) or self.name
        self.given = event_of(fields, "rawInput") or self.given
        self.places = _places(fields) or self.places
        texts = (block_text(block) for block in list_of(fields, "content"))
        self.text = "\n".join(filter(None, texts)) or self.text
        self.status = text_of(fields, "status") or self.status
        if given_as_text and self.status == "pending":
            self.given = _document(self.text) or self.given
        if not self.kind:
            for pattern, kind in kinds:
                if (match := re.match(pattern, self.title)) is not None:
                    self.kind, self.title = kind, self.title[match.end() :]


class ToolCalls:
    """The calls of a turn by id."""

    def __init__(self, kinds: Mapping[str, str], *, given_as_text: bool = False) -> None:
        self._kinds = tuple(kinds.items())
        self._given_as_text = given_as_text
        self._calls: dict[str, ToolCall] = {}
        self.finished = 0

    def knows(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the call was reported before."""
        return str(fields.get("toolCallId")) in self._calls

    def take(self, fields: Mapping[str, Any]) -> ToolCall:
        """Take a report and return its call."""
        call_id = str(fields.get("toolCallId"))
        call = self._calls.get(call_id) or ToolCall(call_id)
        was_open = call.open
        call.take(fields, self._kinds, given_as_text=self._given_as_text)
        self._calls[call_id] = call
        if was_open and call.status == "completed" and call.kind != "think":
            self.finished += 1
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        return call

    @property
    def any_open(self) -> bool:
        """Whether a call is running."""
        return any(call.open for call in self._calls.values())


class ToolPermissions(NamedTuple):
    """A run's permissions. mode: as in a task's ``permissions.mode``."""

    mode: str = "default"
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()

    def allow(self, call: ToolCall) -> bool:
        """Return whether the call is allowed. A disallowed tool is denied whatever else allows the call."""
        names = {call.kind, call.name} - {""}
        if names & set(self.disallowed):
            return False
        if is_own(call):
            return True
        if self.mode == "bypassPermissions":
            return True
        if self.mode == "acceptEdits" and call.kind == "edit":
            return True
        return any(_fits(rule, names, call) for rule in self.allowed)


def rule_for(call: ToolCall) -> str | None:
    """Return the narrowest rule that allows the call; None: there is none."""
    tool = call.kind or call.name
    if not tool:
        return None
    if call.kind == "execute":
        return f"execute({call.subject})" if "*" not in call.subject and is_simple(call.subject) else None
    return f"{tool}({call.subject})" if call.subject and not set("()*\n") & set(call.subject) else tool


def _fits(rule: str, names: set[str], call: ToolCall) -> bool:
    if rule in names:
        return True
    match = _RULE.fullmatch(rule)
    if match is None or match["tool"] not in names:
        return False
    subject, wanted = call.subject, match["subject"]
    if subject == wanted:
        return True
    if not wanted.endswith(":*"):
        return False
    begin = wanted[:-2]
    starts = subject == begin or subject.startswith(f"{begin} ")
    return starts and (call.kind != "execute" or is_simple(subject))


def is_own(call: ToolCall) -> bool:
    """Return whether the call is to the run's own server, which checks permissions itself. A title alone never makes a
    call that acts one of these, as models write titles."""
    if call.kind in _ACTS or any(key in call.given for key in _COMMANDS):
        return False
    return OWN_SERVER in call.name or OWN_SERVER in call.title


def _command(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        if len(value) == 1:
            return str(value[0])
        # Several command lines, or the words of one.
        return "\n".join(value) if any(" " in word for word in value) else shlex.join(value)
    return None


def _document(text: str) -> Mapping[str, Any]:
    try:
        return event_of({"": json.loads(text)}, "")
    except (ValueError, RecursionError):
        return {}


def _own_name(fields: Mapping[str, Any]) -> str:
    meta = fields.get("_meta")
    places: list[object] = [fields, meta]
    places += list(meta.values()) if isinstance(meta, Mapping) else []
    for place in places:
        if isinstance(place, Mapping):
            for key in ("toolName", "tool_name", "name"):
                if isinstance(place.get(key), str):
                    return str(place[key])
    return ""


def _places(fields: Mapping[str, Any]) -> tuple[str, ...]:
    places = (place.get("path") for place in objects_of(fields, "locations"))
    return tuple(place for place in places if isinstance(place, str))


def block_text(block: object) -> str:
    """Return the text of a content block, however nested; for a diff, its path."""
    if not isinstance(block, Mapping):
        return ""
    inner = block.get("content")
    if isinstance(inner, Mapping):
        return block_text(inner)
    if block.get("type") == "diff":
        return f"changes {text_of(block, 'path') or ''}"
    kind = text_of(block, "type")
    return text_of(block, "text") or (f"[{kind}]" if kind not in (None, "text") else "")
