"""Card files: the specialists in them, or what is wrong, with line and remedy.

YAML or JSON with one or more cards, ours or A2A's (``a2a_card``); or Markdown with a single card, whose text is the
system prompt, like the agent files of coding CLIs (``agentfile``).
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from claudomator_py.domain.card import ALIASES, Card
from claudomator_py.domain.errors import Lines, Problem
from claudomator_py.schema.a2a_card import is_a2a, is_written_for_a2a, read_a2a, unreachable, with_protocol
from claudomator_py.schema.agentfile import card_fields, move_lines, read_front_matter
from claudomator_py.schema.documents import ParsedFile, beside, documents_of, misread, parsed_file, refusal_of
from claudomator_py.schema.taskfile import default_task_name, is_extra
from claudomator_py.schema.validation import described, validate, value_problems
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, decode

_FOLDER: Final = "specialists"
_SUFFIX: Final = ".yaml"


def shipped_files() -> dict[str, bytes]:
    """Return the contents of the shipped files, by names without suffix, in order. Raises OSError if the package is
    damaged."""
    entries = (entry for entry in files("claudomator_py").joinpath(_FOLDER).iterdir() if entry.name.endswith(_SUFFIX))
    return {
        entry.name.removesuffix(_SUFFIX): entry.read_bytes() for entry in sorted(entries, key=lambda entry: entry.name)
    }


def files_hash(contents: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of all files, by which a daemon recognises that it already has these cards."""
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def shipped_cards(contents: Mapping[str, bytes]) -> list[Card]:
    """Return the cards in those files. Raises ValueError if one is not valid."""
    import yaml  # a daemon that already has these cards does not need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # gives the same result ten times as fast, if available
    return [Card.model_validate(yaml.load(content, loader)) for content in contents.values()]  # noqa: S506 - both safe


def parse_card_file(data: bytes, filename: str) -> ParsedFile[Card]:
    """Return the cards in a file with that content, or all of its problems. Never raises. filename: without folders;
    its suffix determines the format, its stem is the id of a card that has none."""
    try:
        documents = documents_of(
            decode(data), filename, body="system_prompt", noun="card", read_front_matter=read_front_matter
        )
    except BadText as bad:
        return ParsedFile((), (refusal_of(bad, Card, aliases=ALIASES),))
    if not documents:
        remedy = "write `id: ...` and `description: ...`"
        return ParsedFile((), (Problem(message="there is no card in the file", remedy=remedy),))
    default_id = default_task_name(filename) if len(documents) == 1 else None
    places: dict[str, int | None] = {}

    def card(document: Document) -> Card | list[Problem]:
        parsed = _card(document, default_id, agent_file=filename.lower().endswith(".md"))
        parsed = beside(misread(Card, document, aliases=ALIASES), parsed)
        if isinstance(parsed, list):
            return parsed
        line = document.lines.get(("id",), document.lines.get(()))
        if parsed.id in places:
            message = f"is the id in line {places[parsed.id]}, too"
            return [Problem(line=line, field="id", message=message, remedy="give each card an id of its own")]
        places[parsed.id] = line
        return parsed

    return parsed_file(documents, card)


def _card(document: Document, default_id: str | None, *, agent_file: bool) -> Card | list[Problem]:
    value, lines = document.value, dict(document.lines)
    if not isinstance(value, dict):
        message = f"{described(value)}, but a card is a mapping"
        return [Problem(line=lines.get(()), message=message, remedy="write `key: value` lines")]
    if odd := value_problems(value, document.lines, model=Card):
        return odd
    fields: dict[Any, Any] = dict(value)
    problems = _renamed(fields, lines)
    if agent_file:
        fields, misspelt = card_fields(fields, lines, default_id)
        problems += misspelt
    elif not problems and is_a2a(fields):
        return _addressed(read_card(fields, lines, default_id), lines)
    extra = {key: fields.pop(key) for key in list(fields) if isinstance(key, str) and is_extra(key)}
    if extra:
        extras = fields.get("extra")
        fields["extra"] = {**extra, **extras} if isinstance(extras, dict) else extra
    if "id" not in fields and default_id is not None:
        fields["id"] = default_id
    if problems:
        return problems
    return _addressed(validate(Card, fields, lines), lines)


def _addressed(card: Card | list[Problem], lines: Lines) -> Card | list[Problem]:
    """The card, or what is wrong with its agent's address."""
    if isinstance(card, Card) and (wrong := card.address_problems()):
        return [problem.model_copy(update={"line": lines.get(("url",))}) for problem in wrong]
    return card


def read_card(
    document: Mapping[str, Any], lines: Lines | None = None, default_id: str | None = None
) -> Card | list[Problem]:
    """Return the card in a document: one of ours, possibly with additional A2A fields, or an A2A card. No key is
    ignored. default_id: for an A2A card without an id."""
    if not is_a2a(document):
        return value_problems(document, lines or {}, model=Card) or validate(Card, document, lines or {})
    if is_written_for_a2a(document) and (problems := unreachable(document)):
        return problems
    result = read_a2a(document, default_id=default_id, lines=lines, strict=True)
    return with_protocol(result, document) if isinstance(result, Card) and is_written_for_a2a(document) else result


def _renamed(fields: dict[Any, Any], lines: dict[tuple[Any, ...], int]) -> list[Problem]:
    """Rename other programs' keys to ours."""
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
        move_lines(lines, alias, name)
    return problems


def card_text(document: Mapping[str, Any]) -> str:
    """Return the card as YAML, with multi-line texts as block scalars."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """A dumper with a representer of its own."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
