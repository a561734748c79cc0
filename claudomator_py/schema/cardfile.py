"""Card files: the specialists in them, or what is wrong, with line and remedy.

YAML or JSON with one or more cards; or Markdown with one, whose text is the system prompt, as agents of coding CLIs are
written: there ``tools`` and ``model`` are understood as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from claudomator_py.domain.card import ALIASES, Card
from claudomator_py.domain.errors import Lines, Problem, located
from claudomator_py.schema.documents import documents_of
from claudomator_py.schema.misread import beside, misread
from claudomator_py.schema.taskfile import is_extra
from claudomator_py.schema.taskfiles import default_task_name
from claudomator_py.schema.validation import described, odd_values, validate
from claudomator_py.schema.yamltext import BadText, Document, decode

_TIERS: Final = {"haiku": "fast", "sonnet": "balanced", "opus": "powerful"}
"""What an agent file calls a model, and the tier of it."""
_NO_MODEL: Final = ("inherit", "default")
_SEVERAL = re.compile(r"\s*,\s*")
_BAD_ID = re.compile(r"[^a-z0-9._-]")


@dataclass(frozen=True, slots=True)
class ParsedCards:
    """What is in a card file: its cards, or its problems. A file is accepted whole or not at all."""

    cards: tuple[Card, ...]
    problems: tuple[Problem, ...]
    lines: tuple[Lines, ...] = ()
    """Of each card, the lines of its fields."""

    def located(self, specialist_id: str, problem: Problem) -> Problem:
        """A problem that was found later with the card of that id: with its line, and with its document's number."""
        place = next((place for place, card in enumerate(self.cards) if card.id == specialist_id), None)
        if place is None or place >= len(self.lines):
            return problem
        return located(problem, self.lines[place], place + 1 if len(self.cards) > 1 else None)


def parse_card_file(data: bytes, filename: str) -> ParsedCards:
    """The cards in a file with that content, or every problem it has. Never raises.

    filename: without folders; its suffix says how to read it, its stem is the id of a card that has none of its own.
    """
    try:
        documents = documents_of(decode(data), filename, body="system_prompt", noun="card")
    except BadText as bad:
        return ParsedCards((), (bad.problem,))
    if not documents:
        remedy = "write `id: ...` and `description: ...`"
        return ParsedCards((), (Problem(message="there is no card in the file", remedy=remedy),))
    several = len(documents) > 1
    default_id = None if several else default_task_name(filename)
    cards: list[Card] = []
    problems: list[Problem] = []
    places: dict[str, int | None] = {}
    for number, document in enumerate(documents, 1):
        parsed = _card(document, default_id, agent_file=filename.lower().endswith(".md"))
        parsed = beside(misread(Card, document, aliases=ALIASES), parsed)
        place = number if several else None
        if not isinstance(parsed, Card):
            problems += [problem.model_copy(update={"document": place}) for problem in parsed]
            continue
        line = document.lines.get(("id",), document.lines.get(()))
        if parsed.id in places:
            message = f"is the id in line {places[parsed.id]}, too"
            remedy = "give each card an id of its own"
            problems.append(Problem(line=line, field="id", document=place, message=message, remedy=remedy))
        places.setdefault(parsed.id, line)
        cards.append(parsed)
    if problems:
        return ParsedCards((), tuple(sorted(problems, key=lambda problem: problem.line or 0)))
    return ParsedCards(tuple(cards), (), tuple(document.lines for document in documents))


def _card(document: Document, default_id: str | None, *, agent_file: bool) -> Card | list[Problem]:
    value, lines = document.value, dict(document.lines)
    if not isinstance(value, dict):
        message = f"{described(value)}, but a card is a mapping"
        return [Problem(line=lines.get(()), message=message, remedy="write `key: value` lines")]
    if odd := odd_values(value, document.lines):
        return odd
    fields: dict[Any, Any] = dict(value)
    problems = _renamed(fields, lines)
    if agent_file:
        problems += _as_agent_file(fields, lines)
    extra = {key: fields.pop(key) for key in list(fields) if isinstance(key, str) and is_extra(key)}
    if extra:
        said = fields.get("extra")
        fields["extra"] = {**extra, **said} if isinstance(said, dict) else extra
    if "id" not in fields and default_id is not None:
        fields["id"] = default_id
    if problems:
        return problems
    return validate(Card, fields, lines)


def _renamed(fields: dict[Any, Any], lines: dict[tuple[Any, ...], int]) -> list[Problem]:
    """Give keys of other programs our names."""
    problems = []
    for alias, name in ALIASES.items():
        if alias not in fields:
            continue
        if name in fields:
            message = f"says the same as `{name}`"
            line = lines.get((alias,))
            problems.append(Problem(line=line, field=alias, message=message, remedy="remove one of them"))
            continue
        fields[name] = fields.pop(alias)
        _move(lines, alias, name)
    return problems


def _as_agent_file(fields: dict[Any, Any], lines: dict[tuple[Any, ...], int]) -> list[Problem]:
    """An agent file of a coding CLI names its tools and its model, and has a name where a card has an id."""
    name = fields.get("name")
    if "id" not in fields and isinstance(name, str) and not _BAD_ID.search(name):
        fields["id"] = fields.pop("name")
        _move(lines, "name", "id")
    tools = fields.get("tools")
    if isinstance(tools, str):
        tools = [one for one in _SEVERAL.split(tools.strip()) if one]
    if tools is not None and "permissions" not in fields:
        del fields["tools"]
        fields["permissions"] = {"allowed_tools": tools}
        _move(lines, "tools", "permissions")
    model = fields.get("model")
    if not isinstance(model, str) or "default_tier" in fields:
        return []
    del fields["model"]
    if model in _NO_MODEL:
        return []
    if model not in _TIERS:
        remedy = f"write {', '.join(_TIERS)} or inherit, or `default_tier: ...`"
        return [Problem(line=lines.get(("model",)), field="model", message=f"`{model}` has no tier", remedy=remedy)]
    fields["default_tier"] = _TIERS[model]
    _move(lines, "model", "default_tier")
    return []


def _move(lines: dict[tuple[Any, ...], int], old: str, new: str) -> None:
    """The lines of a key that has another name now."""
    for path in [path for path in lines if path[:1] == (old,)]:
        lines[(new, *path[1:])] = lines.pop(path)


def card_text(document: Mapping[str, Any]) -> str:
    """The card as YAML, with texts of several lines as they are."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """With a representer of its own."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
