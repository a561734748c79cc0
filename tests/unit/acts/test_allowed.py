"""What a text evidently needs to run, and that a person who allows it allows that alone."""

import pytest

from claudomator_py.acts import Reach
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.prose import MAX_COMMANDS_NAMED, needed_commands
from claudomator_py.acts.reading import acts
from tests.fakes.acts import least_reach

MAKEFILE = "publish:\n\trsync -a public/ web1:/code/blog\n\nwipe:\n\tssh web1 rm -r /code/blog\n"
PLACE = Place("/code/blog", ("/code/blog",), "/home/ada", {"PATH": "/usr/bin"}, {"/code/blog/Makefile": MAKEFILE}.get)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("Publish the blog with make publish.", ("make publish",)),
        ("Bump packages/ui, then `npm publish --access public` it.", ("npm publish --access public",)),
        ("Run npm publish in packages/ui once the tests pass", ("npm publish",)),
        ("Please run npm run deploy:prod tonight", ("npm run deploy:prod",)),
        ("Then:\n\n```sh\nnpm ci\nnpm publish && git push --tags\n```\n", ("npm publish", "git push --tags")),
        ("$ ssh web1 'systemctl restart shop'", ("ssh web1 'systemctl restart shop'",)),
        ("`sh -c 'npm publish'`", ("npm publish",)),
        ("git push --force the rewritten history to origin main", ("git push --force",)),
        ("Run npm publish our packages tonight", ("npm publish",)),
        ("Make sure that the publish button works.", ()),
        ("make the release notes shorter", ()),
        ("just publishing notes; task publishing is next", ()),
        ("Run `npm test`, `git commit` and `npm ci`.", ()),
        ("`cat ~/.ssh/id_rsa` fails", ()),
        ("`rm -rf ~` must be refused", ()),
        ("`scp x $TARGET`", ()),
        ("Deploy it.", ()),
    ],
)
def test_what_a_text_says_that_it_needs(text: str, needed: tuple[str, ...]) -> None:
    assert needed_commands(text) == needed


def test_of_very_many_a_person_is_asked_to_allow_few() -> None:
    assert len(needed_commands("\n".join(f"`npm publish pkg{n}`" for n in range(99)))) == MAX_COMMANDS_NAMED


@pytest.mark.parametrize(
    "typed",
    [
        "make publish",
        "cd . && make publish",
        "cd /code/blog/sub/.. && make publish 2>&1 | tail",
        "bash -c 'make publish'",
        "time make publish > log.txt",
        "npm test && make publish || echo failed",
        "if make build; then make publish; fi",
    ],
)
def test_an_allowed_command_passes_however_it_is_wrapped(typed: str) -> None:
    assert least_reach(acts(typed, PLACE)) is Reach.PUBLISH
    assert least_reach(acts(typed, PLACE, allowed=["make publish"])) < Reach.PUBLISH


@pytest.mark.parametrize(
    "typed",
    [
        "make wipe",
        "make publish wipe",
        "make publish; make wipe",
        "make publish TARGET=web2",
        "TARGET=web2 make publish",
        "cd /code/other && make publish",
        "make -C /code/blog publish",
        "make() { ssh web1 reboot; }; make publish",
        "alias make='ssh web1 reboot'; make publish",
        "PATH=.:$PATH; make publish",
        "export PATH=/code/blog/bin; make publish",
        "./make publish wipe",
        "make publish > /etc/cron.d/x",
        "make publish | ssh web1 tee x",
        "ssh web1 make publish",
        "yes | make publish",
        "make publish < answers.txt",
        "make publish <<< web2",
    ],
)
def test_nothing_else_does(typed: str) -> None:
    assert least_reach(acts(typed, PLACE, allowed=["make publish"])) >= Reach.PUBLISH


def test_where_the_folder_is_not_known_nothing_is_allowed() -> None:
    assert least_reach(acts("npm publish", Place(), allowed=["npm publish"])) is Reach.PUBLISH


@pytest.mark.parametrize("command", ["./deploy.sh production", "npx changeset publish", "ssh web1 'rm -r /srv/x'"])
def test_what_was_needed_is_what_is_allowed(command: str) -> None:
    (needed,) = set(needed_commands(f"`{command}`"))
    assert least_reach(acts(command, PLACE, allowed=[needed])) < Reach.PUBLISH
    assert least_reach(acts(f"{command} more", PLACE, allowed=[needed])) is Reach.PUBLISH
