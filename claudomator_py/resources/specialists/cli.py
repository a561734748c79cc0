"""The commands ``specialists`` and ``search``."""

import secrets
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from claudomator_py.cli import completion, times
from claudomator_py.cli.card_files import ReadCard, in_order, read, read_any
from claudomator_py.cli.connect import Client, connected, with_client
from claudomator_py.cli.output import (
    fail,
    fields,
    json_text,
    note,
    out,
    out_json,
    section,
    table_section,
    table_text,
    wants_json,
    write,
    wrote_json,
)
from claudomator_py.cli.task_files import edited
from claudomator_py.client import ServiceProblem, unless_missing
from claudomator_py.domain.card import Card, Skill, Visibility, short_hash
from claudomator_py.domain.fields import name_from
from claudomator_py.resources.specialists import CardOrigin, FoundSpecialistView, SpecialistView
from claudomator_py.schema.cardfile import card_text
from claudomator_py.surface.table import Column, Table, ago, figure
from claudomator_py.texts import plain

_SPECIALISTS = Table[SpecialistView](
    Column("ID", lambda row: row.id, flexible=True),
    Column("SKILLS", lambda row: len(row.content.skills), right=True),
    Column("VISIBILITY", lambda row: row.visibility.value),
    Column("CREATOR", lambda row: row.creator, flexible=True),
    Column("ORGANISATION", lambda row: row.organisation, flexible=True),
    Column("SOURCE", lambda row: row.source),
    Column("CHANGED", lambda row: ago(row.updated_at)),
    Column("DESCRIPTION", lambda row: row.description, flexible=True),
    Column("VERSION", lambda row: row.version, wide=True, right=True),
    Column("URL", lambda row: row.content.url, wide=True),
    Column("FILE", lambda row: row.file_path, wide=True),
)
_FOUND = Table[FoundSpecialistView](
    Column("SCORE", lambda row: f"{row.score:.2f}", right=True),
    Column("SPECIALIST", lambda row: row.specialist.id, flexible=True),
    Column("SKILL", lambda row: row.best_skill_id, flexible=True),
    Column("MEANING", lambda row: figure(row.skills[0].semantic if row.skills else None, ".2f"), wide=True, right=True),
    Column("WORDS", lambda row: figure(row.skills[0].text if row.skills else None, ".2f"), wide=True, right=True),
    Column("DESCRIPTION", lambda row: row.specialist.description, flexible=True),
)
_SKILLS = Table[Skill](
    Column("SKILL", lambda skill: skill.id, flexible=True),
    Column("NAME", lambda skill: skill.name, flexible=True),
    Column("PRICE", lambda skill: None if skill.pricing is None else skill.pricing.text, wide=True),
    Column("CREATOR", lambda skill: skill.creator, wide=True),
    Column("DESCRIPTION", lambda skill: skill.description, flexible=True),
)


class A2aVersion(StrEnum):
    """A version of A2A cards."""

    V0_3 = "0.3"
    V1_0 = "1.0"


IdArgument = Annotated[str, completion.SPECIALISTS.argument("ID", "The specialist's id.")]
GranteeArgument = Annotated[
    str, typer.Argument(metavar="NAME|org:NAME", help="Name of a token, or `org:` and an organisation.")
]


@connected
def list_specialists(client: Client) -> None:
    """List the specialists that you can use.

    These are the public ones, the shared ones of your organisation or with a grant, and your own.
    """
    nothing = "There are no specialists. Register one: claudomator specialists add FILE"
    _write(list(client.all_specialists()), nothing)


@connected
def show(client: Client, specialist: IdArgument) -> None:
    """Show one specialist with its card."""
    view = client.specialist(specialist)
    if wrote_json(view):
        return
    card = view.content
    parts = [_summary(view, card)]
    parts += section("WARNINGS", "\n".join(plain(odd.text) for odd in view.warnings))
    parts += table_section("SKILLS", _SKILLS, card.skills)
    parts += section("DESCRIPTION", plain(card.description).rstrip())
    parts += section("SYSTEM PROMPT", plain(card.system_prompt).rstrip())
    out("\n\n".join(parts))


@connected
def add(
    client: Client,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", readable=False, help="Card files; - reads stdin.")],
) -> None:
    """Register the specialists in files, or update your own.

    Everybody sees a specialist unless its card says `visibility: shared` or `private`. All files are read before the
    first specialist is registered.
    """
    _write(_registered(client, [ReadCard(card) for path in files for card in read(path)]))


@connected
def import_(
    client: Client,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE|URL", help="A2A cards or card files; - reads stdin. For a host, its A2A card."),
    ],
    secret: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="The daemon's variable with the secret that A2A agents ask for."),
    ] = None,
    admits: Annotated[
        bool, typer.Option("--admit", help="Let them do everybody's work, as `specialists admit` does.")
    ] = False,
) -> None:
    """Register specialists from A2A cards, of 0.3 or 1.0, or from card files.

    Nothing in an A2A card is lost: `export --a2a` writes it back. All sources are read before the first specialist is
    registered. A card from a URL was written by somebody else: until an administrator admits it, it does only work of
    your own side, and its permissions add nothing to a task's.
    """
    cards = [item for source in sources for item in read_any(source, secret)]
    named = [item for item in cards if item.is_named]
    registered = _registered(client, named)
    fetched = {item.card.id for item in named if item.is_fetched}
    for item in cards:
        if not item.is_named:
            registered.append(_registered_from_elsewhere(client, item))
            fetched |= {registered[-1].id} if item.is_fetched else set()
    if admits:
        registered = [client.admit_specialist(view.id) for view in registered]
    _write(registered)
    for view in registered:
        if view.id in fetched and view.admitted_by is None and not wants_json():
            whose = _own_side(view)
            note(f"{view.id} works for {whose}. Read its card; then `claudomator specialists admit {view.id}`.")


@connected
def edit(
    client: Client,
    specialist: IdArgument,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file with the new card; - reads stdin. Default: an editor.")
    ] = None,
) -> None:
    """Replace the card of a specialist.

    Without a file, opens $VISUAL or $EDITOR. The change is refused if somebody else has changed the card meanwhile.
    """
    before = client.specialist(specialist)
    if file is None and before.file_path is not None:
        fail(f"The specialist {before.id} follows the file {before.file_path}.", "Edit the file.")
    card = _edited(before) if file is None else _only(read(file))
    if card is None:
        note("Nothing was changed.")
        return
    if card.id != specialist:
        raise typer.BadParameter(f"the card has the id {card.id}; to create another specialist, use `specialists add`")
    _write([client.change_specialist(card, if_version=before.version)])


@with_client
def remove(client: Client, specialist: IdArgument) -> None:
    """Remove a specialist.

    If its card overrides a shipped specialist, the shipped one is back. To remove a specialist that a file defines,
    delete the file.
    """
    client.remove_specialist(specialist)
    note(f"{specialist} was removed.")


@connected
def grant(client: Client, specialist: IdArgument, grantee: GranteeArgument) -> None:
    """Let somebody else see a shared specialist."""
    _note_grants(client.grant_specialist(specialist, grantee))


@connected
def revoke(client: Client, specialist: IdArgument, grantee: GranteeArgument) -> None:
    """Take a grant back."""
    _note_grants(client.revoke_specialist(specialist, grantee))


@connected
def admit(
    client: Client,
    specialist: IdArgument,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the admission back.")] = False,
) -> None:
    """Let a specialist of somebody else do everybody's work.

    Admits the current version of its card, with its prompt and permissions. Once its creator changes it, it has to be
    admitted again. Cards of this daemon's own administrators are admitted automatically.
    """
    view = client.dismiss_specialist(specialist) if revoke else client.admit_specialist(specialist)
    if wants_json():
        out_json(view)
    elif revoke:
        note(f"{view.id} does only work of {view.organisation or view.creator}.")
    else:
        note(f"{view.id} may do everybody's work, with its current card.")


@connected
def export(
    client: Client,
    specialists: Annotated[
        list[str] | None, completion.SPECIALISTS.argument("ID", "The specialists' ids. Default: all that you can use.")
    ] = None,
    a2a: Annotated[
        A2aVersion | None, typer.Option("--a2a", metavar="VERSION", help="Print A2A cards of 0.3 or 1.0, as JSON.")
    ] = None,
) -> None:
    """Print cards as a card file that `specialists add` accepts.

    With `-o json`, as a list. A single A2A card is printed as an object, several as a list.
    """
    if specialists:
        views = [client.specialist(specialist_id) for specialist_id in specialists]
    else:
        views = list(client.all_specialists())
    if a2a is not None and views:
        from claudomator_py.schema.a2a_card import write_a2a

        written = [write_a2a(view.content, a2a.value, f"{client.base_url}/a2a") for view in views]
        out(json_text(written[0] if len(written) == 1 else written))
    elif wants_json():
        out(json_text([view.card for view in views]))
    elif views:
        out("---\n".join(card_text(view.card) for view in views))
    else:
        note("There are no specialists.")


@connected
def search(
    client: Client,
    query: Annotated[str, typer.Argument(metavar="TEXT", help="What needs to be done, in your own words.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number to show.")] = 10,
) -> None:
    """Search specialists, by meaning and by words."""
    matches = client.search_specialists(query, limit=limit)
    if wrote_json(matches):
        return
    if matches.degraded:
        note("Comparing words only: no encoder is configured, or it does not answer.")
    if not matches.items:
        note("No specialist matches.")
        return
    out(table_text(_FOUND, matches.items))
    if (hidden := matches.total - len(matches.items)) > 0:
        note(f"{hidden} more; show them with --limit.")


COMMANDS = {
    "list": list_specialists,
    "import": import_,
    "show": show,
    "add": add,
    "edit": edit,
    "remove": remove,
    "grant": grant,
    "revoke": revoke,
    "admit": admit,
    "export": export,
}


def _registered(client: Client, items: Sequence[ReadCard]) -> list[SpecialistView]:
    fetched = {item.card.id for item in items if item.is_fetched}
    return [_register(client, card, is_fetched=card.id in fetched) for card in in_order([item.card for item in items])]


def _register(client: Client, card: Card, *, is_fetched: bool) -> SpecialistView:
    origin = CardOrigin.FETCHED if is_fetched else None
    return client.register_specialist(card, origin=origin, idempotency_key=secrets.token_urlsafe(18))


def _registered_from_elsewhere(client: Client, given: ReadCard) -> SpecialistView:
    """Register a card whose id follows only from its name: under the same id as last time, and never in place of a card
    with another URL."""
    card = given.card
    ids = _ids_for(card)
    taken = {id_: unless_missing(client.specialist, id_) for id_ in ids}
    again = [id_ for id_ in ids if (before := taken[id_]) is not None and before.content.url == card.url]
    # An earlier version dropped the signs of C# and C++ from ids.
    plain = name_from(card.name or "") or card.id
    if not again and plain not in taken and (before := unless_missing(client.specialist, plain)) is not None:
        again = [plain] if (before.content.url, before.content.name) == (card.url, card.name) else []
    wanted = again[:1] or [id_ for id_ in ids if taken[id_] is None] or ids[-1:]
    while True:
        specialist_id = wanted.pop(0)
        try:
            renamed = card.model_copy(update={"id": specialist_id})
            registered = _register(client, renamed, is_fetched=given.is_fetched)
        except ServiceProblem as problem:
            if problem.code != "conflict" or not wanted:
                raise
            continue  # the id belongs to a hidden card
        if specialist_id != card.id:
            note(f"There is another {card.id}, so this one is {specialist_id}.")
        return registered


def _ids_for(card: Card) -> list[str]:
    """Return the ids that it may get, best first."""
    host = name_from(f"{card.id}-{urlsplit(card.url or '').netloc}") or card.id
    return list(dict.fromkeys((card.id, host, f"{card.id}-{short_hash(card.url or '')}")))


def _edited(before: SpecialistView) -> Card | None:
    """Return the card as edited by the user, who can fix errors; None if it is unchanged."""
    from claudomator_py.schema.cardfile import parse_card_file

    def parse(data: bytes) -> Card | Sequence[str]:
        parsed = parse_card_file(data, "card.yaml")
        return list(map(str, parsed.problems)) or _only(parsed.items)

    card = edited(card_text(before.card), "card.yaml", parse)
    return None if card == before.content else card


def _only(cards: Sequence[Card]) -> Card:
    if len(cards) != 1:
        raise typer.BadParameter(f"it contains {len(cards)} cards, but exactly one is expected")
    return cards[0]


def _summary(view: SpecialistView, card: Card) -> str:
    permissions = card.permissions
    only = None if permissions is None else permissions.tools
    return fields(
        [
            ("id", view.id),
            ("name", view.name if view.name != view.id else ""),
            ("version", f"{card.version} (change {view.version}, {times.ago(view.updated_at, times.now_ms())})"),
            ("visibility", view.visibility.value),
            ("shared with", ", ".join(view.grants)),
            ("creator", view.creator),
            ("organisation", view.organisation or ""),
            ("works for", "everybody" if view.admitted_by is not None else _own_side(view)),
            ("source", view.file_path or view.source),
            ("reached by", card.url or "agents of this daemon"),
            ("keywords", ", ".join(card.keywords)),
            ("capabilities", ", ".join(card.capabilities)),
            ("agents", ", ".join(card.allowed_agents)),
            ("tier", card.default_tier.value if card.default_tier is not None else ""),
            ("permissions", permissions.mode.value if permissions is not None else ""),
            ("tools", "" if only is None else ", ".join(only) or "none"),
            ("price", card.pricing.text),
            ("risk", f"up to {card.risk_ceiling.value}"),
        ]
    )


def _own_side(view: SpecialistView) -> str:
    """Return whose work it does while it is not admitted."""
    whose = view.creator if view.visibility is Visibility.PRIVATE else view.organisation or "this daemon's own side"
    return f"{whose}; not admitted to the work of others"


def _note_grants(view: SpecialistView) -> None:
    if wrote_json(view):
        return
    own = "its creator" if view.organisation is None else view.organisation
    note(f"{view.id} can be used by {', '.join((own, *view.grants))}.")


def _write(views: Sequence[SpecialistView], nothing: str | None = None) -> None:
    write(views, lambda: table_text(_SPECIALISTS, views), nothing)
    for view in views if not wants_json() else ():
        for odd in view.warnings:
            note(f"{view.id}: {plain(odd.text)}.")
