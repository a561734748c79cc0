"""``claudomator specialists`` and ``claudomator search``: from files and an editor to the registry."""

import json
from pathlib import Path

import pytest

from claudomator_py.schema.cardfile import card_text, parse_card_file
from tests.fakes.cards import card
from tests.fakes.command import Command
from tests.unit.cli.cards import PLUMBER, told


@pytest.mark.usefixtures("cards")
def test_where_there_are_none_it_says_how_to_register_one(command: Command) -> None:
    done = command("specialists", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "specialists add FILE" in done.stderr
    assert told(command, "specialists", "list") == []


def test_cards_are_registered_listed_and_shown(command: Command, cards: Path) -> None:
    done = command("specialists", "add", str(cards))
    assert done.returncode == 0, done.stderr
    lines = command("specialists", "list").stdout.splitlines()
    assert lines[0].split() == ["ID", "SKILLS", "VISIBILITY", "CREATOR", "SOURCE", "CHANGED", "DESCRIPTION"]
    assert lines[1].split()[:5] == ["plumber", "1", "public", "operator", "api"]
    shown = command("specialists", "show", "plumber").stdout
    for text in ("Pipe Doctor", "agents of this daemon", "leaks", "You touch nothing else.", "Fixes leaking pipes."):
        assert text in shown
    assert json.loads(command("specialists", "show", "plumber", "-o", "json").stdout)["card"]["id"] == "plumber"


def test_several_cards_and_json_come_from_stdin(command: Command, cards: Path) -> None:
    documents = f"{PLUMBER}---\n{json.dumps(card('painter').document)}\n"
    assert command("specialists", "add", "-", stdin=documents).returncode == 0
    assert [entry["id"] for entry in told(command, "specialists", "list")] == ["painter", "plumber"]


def test_whom_a_card_names_is_registered_before_it(command: Command, cards: Path) -> None:
    chain = "---\n".join(
        f"id: {name}\ndescription: Does {name}.\n{named}\n"
        for name, named in [("a", "fallback: b"), ("b", "escalation: c"), ("c", "fallback: human_review")]
    )
    added = command("specialists", "add", "-", "-o", "json", stdin=chain)
    assert [load["id"] for load in json.loads(added.stdout)] == ["c", "b", "a"], added.stderr
    refused = command("specialists", "add", "-", stdin="id: d\ndescription: D.\nfallback: e\n")
    assert refused.returncode == 1
    assert "there is no specialist `e`" in refused.stderr


def test_a_mistake_in_one_file_registers_nothing(command: Command, cards: Path) -> None:
    wrong = command.home / "wrong.yaml"
    wrong.write_text("id: Wrong\ndescription: x\nskill: []\n")
    done = command("specialists", "add", str(cards), str(wrong))
    assert done.returncode == 1
    assert "wrong.yaml:1: id: `Wrong` is not a name" in done.stderr
    assert "wrong.yaml:3: skill: is not a known key; did you mean `skills`?" in done.stderr
    assert told(command, "specialists", "list") == []


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n", "id: x\ndescription: y\n---\n3\n"])
def test_what_is_no_card_is_said(text: str) -> None:
    assert parse_card_file(text.encode(), "card.yaml").problems


def test_a_card_is_replaced_by_a_file(command: Command, cards: Path) -> None:
    command("specialists", "add", str(cards))
    cards.write_text(PLUMBER.replace("leaking", "burst"))
    assert command("specialists", "edit", "plumber", str(cards)).returncode == 0
    assert told(command, "specialists", "list")[0]["description"] == "Fixes burst pipes."
    other = command("specialists", "edit", "plumber", "-", stdin=PLUMBER.replace("plumber", "painter"))
    assert other.returncode == 2
    assert "specialists add" in other.stderr


def test_a_card_is_edited_with_an_editor(command: Command, cards: Path) -> None:
    command("specialists", "add", str(cards))
    done = command("specialists", "edit", "plumber", EDITOR="sed -i s/leaking/burst/")
    assert done.returncode == 0, done.stderr
    (results,) = told(command, "specialists", "list")
    assert (results["description"], results["version"]) == ("Fixes burst pipes.", 2)

    done = command("specialists", "edit", "plumber", EDITOR="true")
    assert "Nothing was changed" in done.stderr
    assert told(command, "specialists", "list")[0]["version"] == 2


def test_a_mistake_in_the_editor_can_be_mended(command: Command, cards: Path) -> None:
    command("specialists", "add", str(cards))
    done = command("specialists", "edit", "plumber", stdin="n\n", EDITOR="sed -i s/description/descriptoin/")
    assert done.returncode == 1
    assert "did you mean `description`?" in done.stderr
    assert told(command, "specialists", "list")[0]["version"] == 1


@pytest.mark.parametrize("editor", ["no-such-editor", "false"])
def test_an_editor_that_fails_changes_nothing(command: Command, cards: Path, editor: str) -> None:
    command("specialists", "add", str(cards))
    done = command("specialists", "edit", "plumber", EDITOR=editor)
    assert done.returncode == 1
    assert f"The editor {editor}" in done.stderr


def test_a_card_as_text_is_the_same_card() -> None:
    prompt = 'One.\n\n  Two: "three" # four\n'
    entry = card("plumber", system_prompt=prompt, keywords=["yes", "1"], extra={"x-a": [None]})
    assert parse_card_file(card_text(entry.document).encode(), "card.yaml").items == (entry,)


def test_a_shared_one_is_shared_with_others(command: Command, cards: Path) -> None:
    cards.write_text(f"{PLUMBER}visibility: shared\n")
    command("specialists", "add", str(cards))
    assert "can be used by its creator, org:acme." in command("specialists", "grant", "plumber", "org:acme").stderr
    assert "shared with  org:acme" in command("specialists", "show", "plumber").stdout
    done = command("specialists", "revoke", "plumber", "org:acme", "-o", "json")
    assert json.loads(done.stdout)["grants"] == []
    assert command("specialists", "grant", "plumber", "No Name").returncode == 1


def test_one_is_removed(command: Command, cards: Path) -> None:
    command("specialists", "add", str(cards))
    assert command("specialists", "remove", "plumber").returncode == 0
    again = command("specialists", "remove", "plumber")
    assert again.returncode == 1
    assert "There is no specialist 'plumber'." in again.stderr


def test_cards_are_exported_as_a_file_that_can_be_added(command: Command, cards: Path) -> None:
    cards.write_text(f"{PLUMBER}---\nid: painter\ndescription: Paints.\n")
    command("specialists", "add", str(cards))
    whole = command("specialists", "export").stdout
    assert parse_card_file(whole.encode(), "a.yaml").items[1:] == parse_card_file(PLUMBER.encode(), "b.yaml").items
    assert command("specialists", "add", "-", stdin=whole).returncode == 0
    assert [entry["version"] for entry in told(command, "specialists", "list")] == [1, 1]
    assert [entry["id"] for entry in told(command, "specialists", "export", "painter")] == ["painter"]


def test_one_is_found_by_what_it_does(command: Command, cards: Path) -> None:
    command("specialists", "add", str(cards))
    done = command("search", "something drips")
    assert done.stdout.splitlines()[1].split()[1:3] == ["plumber", "leaks"]
    result = json.loads(command("search", "something drips", "-o", "json").stdout)
    assert result["items"][0]["best_skill_id"] == "leaks"
    none = command("search", "zyzzyva")
    assert (none.returncode, none.stdout) == (0, "")
    assert "No specialist matches" in none.stderr


def test_who_would_do_a_task(command: Command, cards: Path) -> None:
    nobody = command("route", "Find what drips.")
    assert (nobody.returncode, nobody.stdout) == (0, "")
    assert "specialists add FILE" in nobody.stderr
    assert command("specialists", "add", str(cards)).returncode == 0

    # Who is addressed is compared with nobody.
    named = command("route", "@plumber find what drips.")
    assert "would go to plumber: the task addresses plumber." in named.stdout
    assert "no specialists" not in named.stderr
    done = command("route", "Find what drips, and fix the leaking pipes.", "--name", "drips", "--tag", "water")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("drips would go to plumber (skill leaks): ")
    assert "semantic 0." in done.stdout
    assert "Others: " not in done.stdout, "all are in the table"
    result = json.loads(command("route", "Find what drips.", "-o", "json").stdout)
    assert [candidate["specialist"] for candidate in result["candidates"]] == ["plumber"]
    assert command("route", "  ").returncode == 2
