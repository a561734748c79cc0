"""Commands are found in a text for people, and words of English are not taken for them."""

import pytest

from claudomator_py.acts import prose
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.prose import MAX_PROGRAMS, commands_in
from claudomator_py.acts.reading import acts
from claudomator_py.acts.walk import Act


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("Please run npm publish, and tell me.", ["npm publish"]),
        ("Then `git push --force origin main`.", ["git push --force origin main"]),
        ("Do this:\n```sh\n$ kubectl delete pod x\nls\n```\nThanks.", ["kubectl delete pod x"]),
        ("$ terraform destroy\nNo objects.", ["terraform destroy"]),
        ("```\nhelm upgrade \\\n  --install api chart\n```", ["helm upgrade \\\n  --install api chart"]),
        ("Start it with `npm run dev`.", ["npm run dev"]),
    ],
)
def test_what_is_found(text: str, commands: list[str]) -> None:
    results = [entry for entry in commands_in(text) if entry.acts or entry.in_code]
    assert [entry.text for entry in results if entry.text != "ls"] == commands
    assert all(text[command_text.start : command_text.end] == command_text.text for command_text in results)


@pytest.mark.parametrize(
    "text",
    [
        "The Publish button stays disabled.",
        "npm is slow; why?",
        "Mail the summary at noon, make it short, and go through the service host list.",
        "Split the mount test, then render the history screen.",
        "See `config.yaml` and `npm_config`.",
        "",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not commands_in(text)


def test_what_it_does_is_told() -> None:
    (command_text,) = commands_in("When done, docker push example.org/shop:1")
    assert not command_text.in_code
    assert [act.kind for act in command_text.acts] == ["package"]


def test_a_crowd_of_programs_is_read_in_parts_and_hides_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{'run git ' * 200}npm publish{' run git' * 200}"
    read: list[str] = []

    def acts_of(command: str) -> tuple[Act, ...]:
        read.append(command)
        return acts(command, Place())

    monkeypatch.setattr(prose, "_acts", acts_of)
    (command_text,) = commands_in(text)
    assert command_text.text.startswith("npm publish")
    assert sum(map(len, read)) <= MAX_PROGRAMS * len(text)
