"""Reads Claude Code agent files into a card's fields: restrictions are applied, grants are not.

Source: code.claude.com, "Create custom subagents" (fields, the effect of ``tools``), and how Claude Code 2.1.330 treats
front matter that is not valid YAML: it quotes values that YAML would reject, and reads it again.
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
"""Tier by model family, whatever the version in the model's id."""
_FAMILY: Final = regex(rf"(?<![a-z])(?:{'|'.join(_TIERS)})(?![a-z])", re.IGNORECASE)
_NO_MODEL: Final = ("", "inherit", "default")
_EVERY_TOOL: Final = "*"
_KNOWN: Final = frozenset({
    "autoCompactWindow", "background", "color", "disallowedTools", "effort", "hooks", "initialPrompt", "isolation",
    "maxTurns", "mcpServers", "memory", "model", "observeSubagents", "observeToolResults", "observer",
    "observerMessage", "omitClaudeMd", "permissionMode", "skills", "tools",
})  # fmt: skip
"""Fields of an agent file that a card does not have."""
_OURS: Final = frozenset(Card.model_fields) | ALIASES.keys()
_MISSPELT: Final = 0.85
"""Similarity of a misspelt key to the right one; see ``domain.errors.near``."""

_FIELD: Final = regex(rf"(?:{'|'.join(sorted(_KNOWN | _OURS))}):(?=\s|\Z)")
_LINE: Final = regex(r"(?P<key>[a-zA-Z_-]+):[ \t]+(?P<value>\S.*)")
_NOT_PLAIN: Final = regex(r"[{}\[\]*&#!|>%@`]|: ")
_COMMAS: Final = ",\N{FULLWIDTH COMMA}\N{IDEOGRAPHIC COMMA}\N{ARABIC COMMA}"
_TABS: Final = regex(r"^\t+", re.MULTILINE)


def read_front_matter(text: str, first_line: int) -> list[Document]:
    """Return the documents as ``read_documents`` reads them or, if that fails, as Claude Code does, or did before it
    used YAML. Raises BadText with the problem of the original text."""
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
    """The line with its value quoted if it contains characters that are special in YAML."""
    match = _LINE.fullmatch(line.rstrip())
    if match is None or not (_NOT_PLAIN.search(match["value"]) or _is_refused_number(match["value"])):
        return line
    value = match["value"]
    if (value[0] == value[-1] and value[0] in "\"'" and len(value) > 1) or _is_list(value):
        return line
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{match["key"]}: "{escaped}"'


def _with_whole_values(lines: list[str]) -> Iterator[str]:
    """The lines, where a value that is not valid YAML extends to the next field, whatever it contains."""
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


def _is_refused_number(value: str) -> bool:
    """True if YAML reads it as a number that ``read_documents`` rejects in this notation, such as ``0x10``."""
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
    """Return the card's fields, and problems of keys that look like misspelt card fields.

    Anything a card has no place for is kept in its ``extra``, see ``domain.card.NOT_APPLIED``. lines: of the fields;
    modified for fields with a different name in the card. default_id: derived from the file's name.
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
    """Keys known to neither agent files nor cards that nearly match a card's key: cards are strict."""
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
        move_lines(lines, "name", "id")
    else:
        card["id"] = default_id or id_from(name)


def _are_skills_of_a_card(value: Any) -> bool:
    """In agent files, skills are names."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _permissions(card: dict[Any, Any], lines: dict[tuple[Any, ...], int]) -> None:
    """The most that the agent may do. A mode counts only if it restricts: what a file from elsewhere wants to be
    allowed is the operator's decision."""
    if "permissions" in card:
        return  # one of our cards, in Markdown
    permissions: dict[str, Any] = {}
    for key, field in (("tools", "tools"), ("disallowedTools", "disallowed_tools")):
        if key not in card:
            continue
        tools = _tools(card.pop(key))
        if key != "tools" or not isinstance(tools, list) or _EVERY_TOOL not in tools:
            permissions[field] = tools
            move_lines(lines, key, "permissions", field)
    if card.get("permissionMode") == PermissionMode.PLAN:
        permissions["mode"] = card.pop("permissionMode")
        move_lines(lines, "permissionMode", "permissions", "mode")
    elif card.get("permissionMode") in ("default", "manual"):
        del card["permissionMode"]
    if permissions:
        card["permissions"] = permissions
        card.setdefault("restricts", True)  # as for callers that address it where such files come from


def _tools(value: Any) -> Any:
    """The names without duplicates: separated by commas or spaces outside brackets, or items of a list. No value means
    none."""
    if value is None:
        return []
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return value
    # YAML also splits at a comma in brackets.
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
    move_lines(lines, "model", "default_tier")


def move_lines(lines: dict[tuple[Any, ...], int], old: str, *new: str) -> None:
    """Move a key's lines to the new place of its value."""
    for path in [path for path in lines if path[:1] == (old,)]:
        lines[(*new, *path[1:])] = lines.pop(path)
