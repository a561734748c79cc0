"""Agent files of Claude Code, read into the fields of a card: what it restricts is applied, what it grants is not.

Source: code.claude.com, "Create custom subagents" (fields, what ``tools`` does), and what Claude Code 2.1.330 makes of
front matter that is not YAML: it puts values that YAML would not take into quotes, and reads it again.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import ALIASES, NOT_APPLIED, Card, id_from
from claudomator_py.domain.errors import Problem, near
from claudomator_py.domain.fields import divided
from claudomator_py.domain.task import PermissionMode
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import Document, Plain, read_documents
from claudomator_py.values import regex

_TIERS: Final = {"haiku": Tier.FAST, "sonnet": Tier.BALANCED, "opus": Tier.POWERFUL, "fable": Tier.POWERFUL}
"""By the family of a model, whatever version an id names with it."""
_FAMILY: Final = regex(rf"(?<![a-z])(?:{'|'.join(_TIERS)})(?![a-z])", re.IGNORECASE)
_NO_MODEL: Final = ("", "inherit", "default")
_EVERY_TOOL: Final = "*"
_KNOWN: Final = frozenset(
    {
        "autoCompactWindow",
        "background",
        "color",
        "disallowedTools",
        "effort",
        "hooks",
        "initialPrompt",
        "isolation",
        "maxTurns",
        "mcpServers",
        "memory",
        "model",
        "observeSubagents",
        "observeToolResults",
        "observer",
        "observerMessage",
        "omitClaudeMd",
        "permissionMode",
        "skills",
        "tools",
    }
)
"""Fields of an agent file that a card does not have."""
_OURS: Final = frozenset(Card.model_fields) | ALIASES.keys()
_MISSPELT: Final = 0.85
"""How alike a misspelt key is to the right one, see ``domain.errors.near``."""

_FIELD: Final = regex(rf"(?:{'|'.join(sorted(_KNOWN | _OURS))}):(?=\s|\Z)")
_LINE: Final = regex(r"(?P<key>[a-zA-Z_-]+):[ \t]+(?P<value>\S.*)")
_NOT_PLAIN: Final = regex(r"[{}\[\]*&#!|>%@`]|: ")
_COMMAS: Final = ",\N{FULLWIDTH COMMA}\N{IDEOGRAPHIC COMMA}\N{ARABIC COMMA}"
_TABS: Final = regex(r"^\t+", re.MULTILINE)


def read_front_matter(text: str, first_line: int) -> list[Document]:
    """Return the documents, as ``read_documents`` reads them or, where that fails, as Claude Code does, or has done
    before it read YAML. Raises BadText, with the problem of the text as it stands."""
    try:
        return read_documents(text, first_line)
    except BadText:
        spaced = textwrap.dedent(_TABS.sub(lambda tabs: "  " * len(tabs[0]), text.replace("\r\n", "\n")))
        lines = spaced.split("\n")
        for mended in (lines, map(_quoted, lines), _with_whole_values(lines)):
            try:
                return read_documents("\n".join(mended), first_line)
            except BadText:
                continue
        raise


def _quoted(line: str) -> str:
    """The line, with its value in quotation marks where it has characters that mean something in YAML."""
    match = _LINE.fullmatch(line.rstrip())
    if match is None or not (_NOT_PLAIN.search(match["value"]) or _is_odd_number(match["value"])):
        return line
    value = match["value"]
    if (value[0] == value[-1] and value[0] in "\"'" and len(value) > 1) or _is_list(value):
        return line
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{match["key"]}: "{escaped}"'


def _with_whole_values(lines: list[str]) -> Iterator[str]:
    """The lines, where a value that is not YAML goes on to the next field, whatever is in it."""
    first = next((number for number, line in enumerate(lines) if _FIELD.match(line)), 0)
    yield from lines[:first]
    while first < len(lines):
        following = range(first + 1, len(lines))
        end = next((number for number in following if _FIELD.match(lines[number])), len(lines))
        whole = "\n".join(lines[first:end])
        try:
            read_documents(whole)
        except BadText:
            key, _, value = whole.partition(":")
            yield f"{key}: {json.dumps(value.strip(), ensure_ascii=False)}" + "\n" * (end - first - 1)
        else:
            yield whole
        first = end


def _is_odd_number(value: str) -> bool:
    """Whether it is a number to YAML that ``read_documents`` refuses as it is written, such as ``0x10``."""
    if value[0] not in "+-.0123456789":
        return False
    try:
        read_documents(value)
    except BadText as bad:
        return bool(bad.forms)
    return False


def _is_list(value: str) -> bool:
    if not (value.startswith("[") and value.endswith("]")):
        return False
    try:
        (document,) = read_documents(value)
    except (BadText, ValueError):
        return False
    return isinstance(document.value, list)


def card_fields(
    fields: dict[Any, Any], lines: dict[tuple[Any, ...], int], default_id: str | None
) -> tuple[dict[Any, Any], list[Problem]]:
    """Return the fields of the card, with problems of keys that look like a misspelt field of a card.

    What a card has no place for is kept in its ``extra``, see ``domain.card.NOT_APPLIED``. lines: of the fields; a
    field that has another name in the card gets its lines there. default_id: what the file is called.
    """
    card, kept = dict(fields), dict[str, Plain]()
    problems = list(_misspelt(fields, lines))
    _name(card, lines, default_id)
    if isinstance(text := card.get("description"), str):
        card["description"] = text.replace("\\n", "\n")
    if isinstance(version := card.get("version"), int | float) and not isinstance(version, bool):
        card["version"] = str(version)
    if not _are_skills_of_a_card(card.get("skills", [{}])):
        kept["skills"] = card.pop("skills")
    _permissions(card, lines)
    _model(card, kept, lines)
    kept |= {key: card.pop(key) for key in list(card) if isinstance(key, str) and _is_foreign(key)}
    if kept:
        extra = card.get("extra")
        card["extra"] = {**(extra if isinstance(extra, dict) else {}), NOT_APPLIED: kept}
    return card, problems


def _is_foreign(key: str) -> bool:
    return key not in _OURS and not key.startswith("x-")


def _misspelt(fields: dict[Any, Any], lines: dict[tuple[Any, ...], int]) -> Iterator[Problem]:
    """Keys that neither an agent file nor a card has, and that are nearly one of a card: a card is strict."""
    for key in fields:
        if not isinstance(key, str) or not _is_foreign(key) or key in _KNOWN:
            continue
        if remedy := near(key, _OURS, alike=_MISSPELT):
            yield Problem(line=lines.get((key,)), field=key, message="is not a known key", remedy=remedy)


def _name(card: dict[Any, Any], lines: dict[tuple[Any, ...], int], default_id: str | None) -> None:
    """An agent file has a name where a card has an id."""
    name = card.get("name")
    if "id" in card or not isinstance(name, str):
        return
    if id_from(name) == name:
        card["id"] = card.pop("name")
        move(lines, "name", "id")
    else:
        card["id"] = default_id or id_from(name)


def _are_skills_of_a_card(value: Any) -> bool:
    """Those of an agent file are names."""
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _permissions(card: dict[Any, Any], lines: dict[tuple[Any, ...], int]) -> None:
    """What it may use at most. A mode counts where it takes freedom away: what a file from elsewhere wants to be
    allowed is for the operator to say."""
    if "permissions" in card:
        return  # a card of ours, as Markdown
    permissions: dict[str, Any] = {}
    for key, field in (("tools", "tools"), ("disallowedTools", "disallowed_tools")):
        if key not in card:
            continue
        tools = _tools(card.pop(key))
        if key != "tools" or not isinstance(tools, list) or _EVERY_TOOL not in tools:
            permissions[field] = tools
            move(lines, key, "permissions", field)
    if card.get("permissionMode") == PermissionMode.PLAN:
        permissions["mode"] = card.pop("permissionMode")
        move(lines, "permissionMode", "permissions", "mode")
    elif card.get("permissionMode") in ("default", "manual"):
        del card["permissionMode"]
    if permissions:
        card["permissions"] = permissions
        card.setdefault("restricts", True)  # as it does where such files come from, for whoever addresses it


def _tools(value: Any) -> Any:
    """The names in it, each once: divided by commas or spaces outside brackets, or items of a list. No value: none."""
    if value is None:
        return []
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return value
    # To YAML, a comma in brackets is between two items as well.
    return list(dict.fromkeys(divided(", ".join(words), lambda sign: sign in _COMMAS or sign.isspace())))


def _model(card: dict[Any, Any], kept: dict[str, Plain], lines: dict[tuple[Any, ...], int]) -> None:
    if "model" not in card:
        return
    model = card.pop("model")
    named = model.strip() if isinstance(model, str) else "" if model is None else str(model)
    if named.lower() in _NO_MODEL:
        return
    family = _FAMILY.search(named)
    if family is None or "default_tier" in card:
        kept["model"] = model
        return
    card["default_tier"] = _TIERS[family[0].lower()].value
    move(lines, "model", "default_tier")


def move(lines: dict[tuple[Any, ...], int], old: str, *new: str) -> None:
    """Give the lines of a key to the place where its value is now."""
    for path in [path for path in lines if path[:1] == (old,)]:
        lines[(*new, *path[1:])] = lines.pop(path)
