"""Commands are found in a text for people, and words of English are not taken for them."""

import pytest

from claudomator_py.acts.prose import commands_in


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
