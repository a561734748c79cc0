"""The ways in which work comes to a specialist, whose it may be, and the matrix of both in the documentation.

``python -m tests.contract.ways_in`` writes the matrix anew.
"""

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from claudomator_py.domain.channel import NewChannel, NewMessage
from claudomator_py.domain.errors import Conflict, Invalid
from claudomator_py.domain.outcome import HandoffRequest
from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role
from claudomator_py.domain.requests import RestartRequest, SubtaskRequest
from claudomator_py.domain.units import HOUR_MS
from claudomator_py.policy.rule import Rule
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.routing import RouteRequest
from claudomator_py.resources.routing.service import Routing
from claudomator_py.resources.runs.service import Runs
from claudomator_py.resources.schedules.service import Schedules
from claudomator_py.resources.specialists import GrantRequest
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.tasks import AnswerRequest, ApproveRequest
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.routing.role import agent_of
from claudomator_py.store.database import Database
from claudomator_py.tasks.messages import PostedMessage
from tests.databases import open_migrated
from tests.fakes.cards import card
from tests.fakes.steps import spec
from tests.fakes.world import World

ANN = Principal("ann", Role.OPERATE, "acme")
EVE = Principal("eve", Role.OPERATE, "acme")
BOB = Principal("bob", Role.OPERATE, "bolt")
DAN = Principal("dan", Role.OPERATE)
ROOT = Principal("root", Role.ADMIN)
PEOPLE = {"operator": OPERATOR, "inbox": INBOX, "dan": DAN, "ann": ANN, "eve": EVE, "bob": BOB}
CARDS = (
    "public, of the operator",
    "private, of the operator",
    "public, of dan",
    "private, of dan",
    "public, of ann",
    "public, of ann, admitted",
    "shared, of ann",
    "shared, of ann, granted to bolt",
    "shared, of ann, granted to bolt and admitted",
    "private, of ann",
)
SHEEP = {"id": "count-woolly", "name": "Sheep", "examples": ["Count the sheep.", "How many sheep are there?"]}
WORK = "Count the sheep. How many sheep are there?"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "specialists.md"
_MATRIX = re.compile(r"^\| card \|.*?(?=^$)", re.MULTILINE | re.DOTALL)
Way = Callable[[World, Principal], bool]


def peopled(database: Database, **more: Any) -> World:
    """A world with somebody else to do things."""
    world = World(database, routing=True, **more)
    world.specialists.register(card("ben", description="Bakes bread."))
    return world


def put(world: World, described: str, **more: Any) -> None:
    """Register the card of that row of the matrix."""
    words = re.findall(r"\w+", described)
    mine = world.access.as_(PEOPLE[next(word for word in words if word in PEOPLE)])[Specialists]
    mine.register(card("shepherd", visibility=words[0], skills=[SHEEP], **more))
    if "granted" in words:
        mine.grant("shepherd", GrantRequest(grantee="org:bolt"))
    if "admitted" in words:
        world.access.as_(ROOT)[Specialists].admit("shepherd")


def _name(by: Principal) -> str:
    return f"t-{by.id}"


def _clear(world: World, by: Principal) -> None:
    """End its task, so that the next one's has room."""
    with suppress(Conflict):
        world.access.as_(by)[Tasks].cancel(_name(by))
    if world.row(_name(by)).state == "RUNNING":
        world.succeed(_name(by))


def _routed(world: World, name: str) -> bool:
    world.router.route()
    return world.row(name).specialist == "shepherd"


def _sent(world: World, by: Principal, **fields: Any) -> bool:
    """Whether the task is taken; the inbox has files."""
    wanted = spec(_name(by), **fields)
    if by == INBOX:
        return not world.take("/in/t.yaml", wanted)
    try:
        world.access.as_(by)[Tasks].submit(wanted)
    except Invalid:
        return False
    return True


def _submitted(world: World, by: Principal, **fields: Any) -> bool:
    return _sent(world, by, **fields) and _routed(world, _name(by))


def by_text(world: World, by: Principal) -> bool:
    return _submitted(world, by, instructions=WORK)


def by_address(world: World, by: Principal) -> bool:
    return _submitted(world, by, instructions="@shepherd, have a look at this, please.")


def by_name(world: World, by: Principal) -> bool:
    return _submitted(world, by, specialist="shepherd")


def by_rule(world: World, by: Principal) -> bool:
    world.policy_rules = (Rule.model_validate({"name": "give", "specialist": "shepherd"}),)
    world.restarted_daemon()
    return _submitted(world, by, instructions="Bake some bread.")


def by_agent(world: World, by: Principal) -> bool:
    """Its agent is at the hub."""
    world.registry.reach([agent_of(world.specialists.get("shepherd").content)])
    world.registry.is_present = lambda _: True
    if not _sent(world, by, agent={"type": "hub:shepherd"}):
        return False
    world.router.route()
    world.tick()
    return "hub:shepherd" in [run.agent for run in world.service.runs(_name(by))]


def by_schedule(world: World, by: Principal) -> bool:
    made = spec(_name(by), instructions=WORK, schedule="0 * * * *", timezone="UTC")
    if by == INBOX:
        world.take("/in/t.yaml", made)
    else:
        world.access.as_(by)[Schedules].add(made)
    world.now_ms += HOUR_MS - world.now_ms % HOUR_MS
    world.schedule_runner.run_due()
    return _routed(world, next(name for name in world.names() if name.startswith(f"{_name(by)}.")))


def by_restart(world: World, by: Principal) -> bool:
    mine = world.access.as_(by)[Tasks]
    _sent(world, by, specialist="ben")
    world.router.route()
    mine.cancel(_name(by))
    try:
        mine.restart(_name(by), RestartRequest(specialist="shepherd"))
    except Invalid:
        return False
    return _routed(world, _name(by))


def by_answer(world: World, by: Principal) -> bool:
    """The operator, who sees every card, answers who does it."""
    world.policy_rules = (Rule.model_validate({"name": "ask", "specialist": "nobody"}),)
    world.restarted_daemon()
    _submitted(world, by, instructions="Bake some bread.")
    assert world.state(_name(by)) == "NEEDS_INPUT clarification"
    world.policy_rules = ()
    world.restarted_daemon()
    try:
        world.service.answer(_name(by), AnswerRequest(text="shepherd"))
    except Invalid:
        return False
    return _routed(world, _name(by))


def by_approval(world: World, by: Principal) -> bool:
    """The operator approves it, and says who does it."""
    world.policy_rules = (Rule.model_validate({"name": "watched", "approve": {}}),)
    world.restarted_daemon()
    _submitted(world, by, instructions="Bake some bread.")
    try:
        world.service.approve(_name(by), ApproveRequest(specialist="shepherd"))
    except Invalid:
        return False
    return _routed(world, _name(by))


def _running(world: World, by: Principal) -> tuple[Runs, str]:
    """What a run of its task may ask for, which ben does, and the run's id."""
    _sent(world, by, specialist="ben")
    world.router.route()
    world.tick()
    run = world.live(_name(by))
    return world.access.as_(Principal(f"run:{run.id}", Role.RUN, by.organisation, run.id))[Runs], run.id


def by_subtask(world: World, by: Principal) -> bool:
    mine, run = _running(world, by)
    name = f"sub-{by.id}"
    try:
        mine.create_subtask(run, SubtaskRequest(name=name, instructions=WORK, specialist="shepherd"))
    except Invalid:
        return False
    finally:
        world.succeed(_name(by))
    routed = _routed(world, name)
    world.access.as_(by)[Tasks].cancel(name)
    return routed


def by_handing_on(world: World, by: Principal) -> bool:
    mine, run = _running(world, by)
    try:
        mine.hand_on(run, HandoffRequest(to="shepherd"))
    except Conflict:
        return False
    finally:
        world.succeed(_name(by))
        _clear(world, by)
    return True


def by_fallback(world: World, by: Principal) -> bool:
    world.specialists.register(card("cid", fallback="shepherd"))
    _sent(world, by, specialist="cid", retry={"max_attempts": 3, "backoff": "1s"})
    for _ in range(2):
        world.router.route()
        world.tick(HOUR_MS)
        world.fail(_name(by), "agent_error", detail="it does not know how")
    routed = _routed(world, _name(by))
    _clear(world, by)
    return routed


def by_membership(world: World, by: Principal) -> bool:
    """As one of a channel that it creates."""
    try:
        world.access.as_(by)[Channels].create(NewChannel(name=f"c-{by.id}", participants=("ben", "shepherd")))
    except Invalid:
        return False
    return True


def _addressed_in_its_channel(world: World, by: Principal, write: Callable[[Channels, str, str], Any]) -> bool:
    channel = f"c-{by.id}"
    mine = world.access.as_(by)[Channels]
    try:
        mine.create(NewChannel(name=channel, participants=("shepherd", "ben")))
    except Invalid:
        mine.create(NewChannel(name=channel, participants=("ben",)))
    message = write(mine, channel, f"@shepherd {WORK}")
    return [answer.specialist for answer in message.answers if answer.task_id is not None] == ["shepherd"]


def by_mention(world: World, by: Principal) -> bool:
    return _addressed_in_its_channel(
        world, by, lambda mine, channel, text: mine.post(channel, NewMessage(content=text))
    )


def by_webhook(world: World, by: Principal) -> bool:
    return _addressed_in_its_channel(
        world,
        by,
        lambda _, channel, text: world.channels.write(channel, PostedMessage("webhook:mara", NewMessage(content=text))),
    )


def by_search(world: World, by: Principal) -> bool:
    match = world.access.as_(by)[Specialists].search("woolly sheep")
    assert match.total == len(match.items), "what is not found is not counted"
    return "shepherd" in [item.specialist.id for item in match.items]


def by_preview(world: World, by: Principal) -> bool:
    """What ``route`` says, before there is a task."""
    return world.access.as_(by)[Routing].route(RouteRequest(instructions=WORK)).specialist == "shepherd"


WAYS: dict[str, Way] = {
    "its text": by_text,
    "`@name` in its text": by_address,
    "its `specialist`": by_name,
    "its `agent`": by_agent,
    "a schedule": by_schedule,
    "a rule": by_rule,
    "an answer": by_answer,
    "an approval": by_approval,
    "a restart": by_restart,
    "a task beside it": by_subtask,
    "handed on": by_handing_on,
    "a fallback": by_fallback,
    "member of a channel": by_membership,
    "mentioned there": by_mention,
    "by its webhook": by_webhook,
    "`route`": by_preview,
    "a search": by_search,
}


def of_way(way: Way, described: str) -> list[str]:
    """Whose work the card is given in that way."""
    with tempfile.TemporaryDirectory() as folder, open_migrated(Path(folder)) as database:
        world = peopled(database)
        put(world, described, **({"url": "ws-agent://shepherd"} if way is by_agent else {}))
        return [name for name, by in PEOPLE.items() if way(world, by)]


def matrix(results: Mapping[str, Mapping[str, list[str]]]) -> str:
    """The table. results: by way and card, whose work it is given; ways in which that is the same share a column."""
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for way, whose in results.items():
        groups.setdefault(tuple(tuple(whose[described]) for described in CARDS), []).append(way)
    rows = [["card", *(", ".join(ways) for ways in groups.values())], ["---"] * (len(groups) + 1)]
    rows += [[described, *(_told(column[number]) for column in groups)] for number, described in enumerate(CARDS)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _told(names: tuple[str, ...]) -> str:
    return "nobody" if not names else "all" if len(names) == len(PEOPLE) else ", ".join(names)


def documented() -> dict[str, dict[str, list[str]]]:
    """What the documentation says, by way and card."""
    table = _MATRIX.search(PAGE.read_text())
    assert table is not None
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table[0].splitlines()]
    all_of_it = {"nobody": [], "all": list(PEOPLE)}
    return {
        way: {described: all_of_it.get(cells[column], cells[column].split(", ")) for described, *cells in rows}
        for column, ways in enumerate(head[1:])
        for way in ways.split(", ")
    }


if __name__ == "__main__":
    made = matrix({name: {name: of_way(way, name) for name in CARDS} for name, way in WAYS.items()})
    PAGE.write_text(_MATRIX.sub(lambda _: made, PAGE.read_text()))
