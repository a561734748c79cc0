"""A task that is vague, risky and ruled, and that needs tools, stops once: whoever approves it answers it all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claudomator_py.domain.channel import ChannelSettings, NewChannel, NewMessage, PrimaryRule
from tests.e2e.daemon import Daemon
from tests.e2e.scenarios_support import document, in_state
from tests.e2e.site import Site, open_site
from tests.warm.starter import WarmStarter

RULES = [
    {"name": "ask", "when": 'task.risk != "low"', "approve": {"within": "1h"}},
    {
        "name": "isolate",
        "when": 'task.risk == "high"',
        "tools": {"disallowed_tools": ["WebSearch"]},
        "reach": "network",
    },
]
TEXTS = (
    "Deploy it.",
    "Ship it!",
    "Please restart it.",
    "Run `npm publish` and then send the newsletter to all customers.",
    "Delete the old backups of the production database, it is urgent.",
    "Run `git push --force origin main`, `npm publish` and `terraform destroy`.",
    "Starte bitte den Mailserver neu und gib dem Praktikanten Admin-Rechte.",
)
VAGUE = ("fix it please", "Please do something about it.")


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    routing = {"on_vague": "ask", "on_ambiguity": "clarify"}
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing=routing, policy=RULES) as site:
        yield site


def stops(daemon: Daemon, ref: str) -> int:
    """How often it has asked a person."""
    return sum("NEEDS_INPUT" in str(event.data) for event in daemon.client.list_events(task=ref, limit=500).items)


def approved(daemon: Daemon, ref: str) -> None:
    """Approve what asks, and see it to its end."""
    in_state(daemon, ref, "NEEDS_INPUT")
    daemon.client.approve(ref)
    done = in_state(daemon, ref, "COMPLETED", "FAILED", "NEEDS_INPUT")
    assert (done.state, stops(daemon, ref)) == ("COMPLETED", 1), (ref, done.reason_text)


def test_whoever_approves_a_task_answers_it_all(site: Site) -> None:
    daemon = site.start().ready()
    for fields in ({}, {"approval": True}, {"reach": "tree"}, {"specialist": "generalist"}):
        names = [f"{next(iter(fields), 'risky')}-{number}" for number in range(len(TEXTS))]
        for name, text in zip(names, TEXTS, strict=True):
            site.drop(f"{name}.yaml", document(name, text, agent=None, **fields))
        for name in names:
            approved(daemon, name)


def test_what_is_approved_is_not_asked_about_because_it_is_vague(site: Site) -> None:
    daemon = site.start().ready()
    for number, text in enumerate(VAGUE):
        site.drop(f"{number}.yaml", document(f"vague-{number}", text, agent=None, approval=True))
    site.drop("asks.yaml", document("asks", VAGUE[0], agent=None))
    for number in range(len(VAGUE)):
        approved(daemon, f"vague-{number}")
    assert "Which specialist is meant?" in str(in_state(daemon, "asks", "NEEDS_INPUT").reason_text)


def test_so_does_who_approves_what_a_message_asks(site: Site) -> None:
    daemon = site.start().ready()
    settings = ChannelSettings(primary=PrimaryRule.OFF)
    daemon.client.create_channel(NewChannel(name="kitchen", participants=("generalist",), settings=settings))
    for text in TEXTS[2:]:
        message = daemon.client.post_message("kitchen", NewMessage(content=f"@generalist {text}"))
        (answer,) = message.answers
        approved(daemon, str(answer.task_id))


def test_a_message_to_a_role_that_needs_approval_asks_once_and_says_for_what(tmp_path: Path, warm: WarmStarter) -> None:
    """Rules on its risk and on who does it, a role that restricts it, and the tool that it needs are one question."""
    rules = [RULES[0], {"name": "role", "when": 'task.specialist == "keeper"', "approve": {"within": "1h"}}]
    card = tmp_path / "keeper.yaml"
    card.write_text(
        "id: keeper\ndescription: Keeps packages.\nsystem_prompt: You keep packages.\nrestricts: true\n"
        "permissions: {mode: default, allowed_tools: [Read]}\n"
    )
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing={}, policy=rules) as site:
        daemon = site.start().ready()
        assert site.command("specialists", "add", str(card)).returncode == 0
        settings = ChannelSettings(primary=PrimaryRule.OFF)
        daemon.client.create_channel(NewChannel(name="kitchen", participants=("keeper",), settings=settings))
        text = "@keeper Run `npm publish` and then send the newsletter to all customers."
        (answer,) = daemon.client.post_message("kitchen", NewMessage(content=text)).answers
        ref = str(answer.task_id)
        asked = str(in_state(daemon, ref, "NEEDS_INPUT").reason_text)
        assert all(rule in asked for rule in ("ask", "role", "high-risk")), asked
        assert "run `npm publish`" in site.command("why", ref).stdout
        approved(daemon, ref)
        assert "keeper works by its prompt: You keep packages." in site.command("why", ref).stdout


def test_who_approves_a_task_for_a_role_of_less_risk_is_told_and_asked_once(site: Site, tmp_path: Path) -> None:
    card = tmp_path / "apprentice.yaml"
    card.write_text("id: apprentice\ndescription: Helps.\nsystem_prompt: You help.\nrisk_ceiling: low\n")
    daemon = site.start().ready()
    assert site.command("specialists", "add", str(card)).returncode == 0
    for number, text in enumerate(TEXTS[2:]):
        site.drop(f"named-{number}.yaml", document(f"named-{number}", text, agent=None, specialist="apprentice"))
        site.drop(f"addressed-{number}.yaml", document(f"addressed-{number}", f"@apprentice {text}", agent=None))
    for name in (f"{how}-{number}" for how in ("named", "addressed") for number in range(len(TEXTS) - 2)):
        asked = str(in_state(daemon, name, "NEEDS_INPUT").reason_text)
        assert "apprentice takes tasks up to low risk, and this one has high risk" in asked
        approved(daemon, name)
        assert "apprentice" in site.command("why", name).stdout


def test_a_task_asks_where_nothing_is_routed_and_no_rule_is_written_too(tmp_path: Path, warm: WarmStarter) -> None:
    agents = {"alpha": {"kind": "simulated", "auto_select": True}}
    with open_site(tmp_path / "site", warm=warm, agents=agents, routing={"preset": "none"}) as site:
        daemon = site.start().ready()
        site.drop("asks.yaml", document("asks", TEXTS[3], agent=None, approval=True))
        site.drop("named.yaml", document("named", TEXTS[3], agent="alpha", approval=True))
        for name in ("asks", "named"):
            assert in_state(daemon, name, "NEEDS_INPUT").runs == 0
            approved(daemon, name)
