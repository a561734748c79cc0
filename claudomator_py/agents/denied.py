"""Tool calls that were denied: what they were to do, in short, and what allows just that."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from claudomator_py.agents.plaintext import readable
from claudomator_py.domain.outcome import Denied

MAX_CALLS = 20
_MAX_INPUT = 300
_MAX_RULE = 4_000
# What such a call is about, by the names that its parameters have.
_TELLING = ("command", "cmd", "file_path", "filePath", "notebook_path", "path", "url", "query", "prompt")


def denied_call(tool: str, given: Mapping[str, Any], rule: str | None) -> Denied:
    """Return the call. given: its parameters. rule: what allows it; one that no command line takes as a word is left
    out."""
    words = next((given[name] for name in _TELLING if isinstance(given.get(name), str)), None)
    if words is None:
        words = json.dumps(given, ensure_ascii=False) if given else ""
    line = " ".join(readable(words[: 4 * _MAX_INPUT]).split())
    short = line if len(line) <= _MAX_INPUT and len(words) <= 4 * _MAX_INPUT else f"{line[: _MAX_INPUT - 3]}..."
    fits = rule is not None and len(rule) <= _MAX_RULE and rule.isprintable()
    return Denied(tool=tool, input=short, rule=rule if fits else None)


def distinct(calls: Iterable[Denied]) -> tuple[Denied, ...]:
    """Return each call once, and not too many of them."""
    return tuple(dict.fromkeys(calls))[:MAX_CALLS]


def questions(given: Mapping[str, Any]) -> str | None:
    """Return what a tool that asks the user was to ask, with the answers that it offers; None: nothing that can be
    read."""
    asked = given.get("questions")
    found = [_question(one) for one in asked if isinstance(one, Mapping)] if isinstance(asked, list) else []
    return "\n\n".join(one for one in found if one) or None


def _question(one: Mapping[str, Any]) -> str:
    text = one.get("question")
    options = one.get("options")
    labels = [
        option["label"]
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, Mapping) and isinstance(option.get("label"), str)
    ]
    return "\n".join([text, *(f"- {label}" for label in labels)]) if isinstance(text, str) else ""
