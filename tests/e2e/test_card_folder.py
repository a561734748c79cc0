"""The folder of specialists: each card follows its file, and a file that is wrong harms nobody."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.site import Site, open_site
from tests.patience import wait_until
from tests.warm.starter import WarmStarter

PLUMBER = "id: plumber\ndescription: Fixes leaking pipes.\n"


@pytest.fixture
def site(tmp_path: Path, warm: WarmStarter) -> Iterator[Site]:
    with open_site(tmp_path / "site", warm=warm, routing={"shipped": False}) as site:
        yield site


@pytest.fixture
def folder(site: Site) -> Path:
    folder = site.root / "specialists"
    folder.mkdir(exist_ok=True)
    return folder


def described(daemon: Daemon) -> dict[str, str]:
    """What each specialist does, by id."""
    return {specialist.id: specialist.description for specialist in daemon.client.all_specialists()}


def put(folder: Path, name: str, text: str) -> None:
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / name)


def test_a_card_comes_changes_and_goes_with_its_file(site: Site, folder: Path) -> None:
    daemon = site.start().ready()
    put(folder, "plumber.yaml", PLUMBER)
    wait_until(lambda: described(daemon) == {"plumber": "Fixes leaking pipes."}, "the card")
    specialist = daemon.client.specialist("plumber")
    assert (specialist.source, specialist.creator, specialist.file_path) == (
        "file",
        "operator",
        str(folder / "plumber.yaml"),
    )

    put(folder, "plumber.yaml", PLUMBER.replace("leaking", "frozen") + "---\nid: roofer\ndescription: Tiles.\n")
    wait_until(lambda: described(daemon) == {"plumber": "Fixes frozen pipes.", "roofer": "Tiles."}, "the change")

    put(folder, "plumber.yaml", PLUMBER)
    wait_until(lambda: described(daemon) == {"plumber": "Fixes leaking pipes."}, "the roofer to be gone")
    (folder / "plumber.yaml").rename(folder / "pipes.yaml")
    wait_until(lambda: daemon.client.specialist("plumber").file_path == str(folder / "pipes.yaml"), "its new name")
    (folder / "pipes.yaml").unlink()
    wait_until(lambda: not described(daemon), "the card to be gone")


def test_a_file_that_is_wrong_leaves_its_card_and_harms_no_other(site: Site, folder: Path) -> None:
    daemon = site.start().ready()
    put(folder, "plumber.yaml", PLUMBER)
    wait_until(lambda: "plumber" in described(daemon), "the card")

    put(folder, "plumber.yaml", PLUMBER + "colour: red\n")
    put(folder, "twin.yaml", "id: roofer\ndescription: Tiles.\n")
    refusal = folder / "plumber.yaml.error.txt"
    wait_until(refusal.exists, "the refusal")
    assert "plumber.yaml:3: colour" in refusal.read_text()
    assert "the specialists in it are as they were" in refusal.read_text()
    wait_until(lambda: set(described(daemon)) == {"plumber", "roofer"}, "the other card")
    assert [Path(entry.path).name for entry in daemon.client.status().inbox] == ["plumber.yaml"]

    put(folder, "plumber.yaml", PLUMBER)
    wait_until(lambda: not refusal.exists(), "the refusal to go")


def test_an_id_that_another_file_has_is_refused_until_it_is_free(site: Site, folder: Path) -> None:
    daemon = site.start().ready()
    put(folder, "plumber.yaml", PLUMBER)
    wait_until(lambda: "plumber" in described(daemon), "the card")

    put(folder, "other.yaml", PLUMBER.replace("leaking", "frozen"))
    refusal = folder / "other.yaml.error.txt"
    wait_until(refusal.exists, "the refusal")
    assert "plumber" in refusal.read_text()

    (folder / "plumber.yaml").unlink()
    wait_until(lambda: described(daemon) == {"plumber": "Fixes frozen pipes."}, "the other card")


def test_what_happened_while_no_daemon_ran_is_found_at_the_start(site: Site, folder: Path) -> None:
    daemon = site.start().ready()
    for name in ("plumber", "roofer", "painter"):
        put(folder, f"{name}.yaml", f"id: {name}\ndescription: A {name}.\n")
    wait_until(lambda: len(described(daemon)) == 3, "the cards")
    versions = {specialist.id: specialist.version for specialist in daemon.client.all_specialists()}
    daemon.kill()
    (folder / "roofer.yaml").unlink()
    put(folder, "painter.yaml", "id: painter\ndescription: Another painter.\n")

    daemon = site.start().ready()

    wait_until(
        lambda: described(daemon) == {"plumber": "A plumber.", "painter": "Another painter."}, "what has happened"
    )
    assert daemon.client.specialist("plumber").version == versions["plumber"], "it was read, and says the same"


def test_what_is_odd_is_told_in_the_log_and_nothing_that_another_file_mends(site: Site, folder: Path) -> None:
    skill = "skills: [{id: taps, name: Taps, examples: [The tap drips all night, Mend the dripping tap]}]\n"
    put(folder, "a.yaml", f"id: plumber\ndescription: Mends taps.\nfallback: roofer\n{skill}")
    put(folder, "b.yaml", f"id: fitter\ndescription: Fits taps.\n{skill}")
    put(folder, "c.yaml", "id: roofer\ndescription: Tiles.\n")
    daemon = site.start().ready()
    expected = ("taps of fitter", "its skill taps is nearly taps of plumber")
    wait_until(lambda: all(words in site.log_text() for words in expected), "the warnings, a line each")

    assert set(described(daemon)) == {"plumber", "fitter", "roofer"}
    assert not list(folder.glob("*.error.txt"))


def test_who_names_nobody_as_its_fallback_is_refused_until_there_is_one(site: Site, folder: Path) -> None:
    put(folder, "a.yaml", f"{PLUMBER}fallback: roffer\n---\nid: fitter\ndescription: Fits.\nescalation: plumber\n")
    put(folder, "b.yaml", "id: painter\ndescription: Paints.\n")
    daemon = site.start().ready()
    refusal = folder / "a.yaml.error.txt"
    wait_until(lambda: refusal.exists() and "painter" in described(daemon), "the refusal, and the other card")
    refused = refusal.read_text()
    assert "a.yaml:3: fallback: there is no specialist `roffer`; " in refused
    assert "`claudomator specialists list` lists them all" in refused

    put(folder, "c.yaml", "id: roffer\ndescription: Tiles.\nfallback: fitter\n")
    wait_until(lambda: set(described(daemon)) == {"plumber", "fitter", "painter", "roffer"}, "all that name each other")
    wait_until(lambda: not refusal.exists(), "the refusal to go")


def test_no_task_works_in_the_folder(site: Site, folder: Path) -> None:
    site.start().ready()
    site.drop("task.yaml", f"instructions: x\nagent: {{type: sh}}\nworking_dir: {folder}\n")
    refusal = site.inbox / "task.yaml.error.txt"
    wait_until(refusal.exists, "the refusal")
    assert "working_dir" in refusal.read_text()
