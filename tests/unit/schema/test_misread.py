"""Files whose YAML says less, or something else, than their author wrote: refused, with line and quoted form."""

from pathlib import Path

import pytest

from claudomator_py.schema.cardfile import parse_card_file
from claudomator_py.schema.configfile import ConfigError, load_config
from claudomator_py.schema.taskfile import parse_task_file

CUT_TASKS = [
    (
        "instructions: Fix #42, not prod\n",
        (
            "f.yaml:1: instructions: `#42, not prod` is a comment to YAML, and no part of the text; "
            'put the text in quotes: "Fix #42, not prod"; write a comment in a line of its own'
        ),
    ),
    (
        "name: a\ninstructions: Port it to C # and leave prod alone\n",
        "f.yaml:2: instructions: `# and leave prod alone`",
    ),
    ("name: a\ninstructions: #42 must be fixed\n", "f.yaml:2: instructions: `#42 must be fixed` is a comment to YAML"),
    ("instructions:\n  Fix the login\n  of #42\nname: a\n", "f.yaml:1: instructions: `#42` is a comment to YAML"),
    ("instructions: x\nexpected_output: a fix for #42\n", "f.yaml:2: expected_output: `#42` is a comment"),
    ("instructions: x\ncheck: grep -c #TODO src/a.py\n", "f.yaml:2: check: `#TODO src/a.py` is a comment"),
    ("instructions: x\ncheck:\n  - make\n  - grep x # y\n", "f.yaml:4: check[1]: `# y` is a comment"),
    ("instructions: x\ncheck:\n  - [grep, x, y]\n  - [\n    make #all\n    ]\n", "f.yaml:5: check[1][0]: `#all` is a"),
    (
        "instructions: x\nname: fix #42\n",
        "f.yaml:2: name: `#42` is a comment to YAML, and no part of the text; put the text",
    ),
    ("instructions: x\ntags:\n  - sprint #3\n", "f.yaml:3: tags[0]: `#3` is a comment"),
    ("instructions: x\ntags: sprint #3\n", "f.yaml:2: tags: `#3` is a comment"),
    ("instructions: x\nworking_dir: /srv/C #\n", "f.yaml:2: working_dir: `#` is a comment"),
    ("instructions: x\nenv:\n  TITLE: Issue #42\n", "f.yaml:3: env.TITLE: `#42` is a comment"),
    (
        "instructions:\n  # Fix the login\n\n  It redirects.\n",
        "f.yaml:1: instructions: `# Fix the login` is a comment to YAML, and no part of the text; write `|`",
    ),
    ("name: a\ninstructions:\n  Fix it,\n  but\n\n  # leave prod\n", "f.yaml:2: instructions: `# leave prod` is a"),
    ("instructions: Fix it\n  # and leave prod\ntags: a\n", "f.yaml:1: instructions: `# and leave prod` is a"),
    ("tags: a\ninstructions: Fix it,\n  but\n\n # leave prod\n", "f.yaml:2: instructions: `# leave prod` is a"),
    ("instructions:\n  Fix it\n    # not prod\nname: a\n", "f.yaml:1: instructions: `# not prod` is a comment"),
    ("instructions:\n    # Rules\n  Fix it\n", "f.yaml:1: instructions: `# Rules` is a comment"),
    ("instructions: Fix it\n# why\n  # not prod\nname: a\n", "f.yaml:1: instructions: `# not prod` is a comment"),
    ("instructions: |\n  Fix it\n# why\n\n#\n   # not prod\n", "f.yaml:1: instructions: `# not prod` is a"),
    ("name: a\r\ninstructions: Fix it\r\n\r\n# why\r\n # no\r\n", "f.yaml:2: instructions: `# no` is a comment"),
    ("instructions: |\n    Fix it\n\n  # not prod\nname: a\n", "f.yaml:1: instructions: `# not prod` is a comment"),
    ("instructions: >-\n    Fix it\n  # not prod\n", "f.yaml:1: instructions: `# not prod` is a comment"),
    ("name: a\ninstructions: x\n---\nname: b\ninstructions: y #1\n", "f.yaml:5: instructions: `#1` is a comment"),
    ("instructions: x #1\nproirity: high\ntags: a #2\n", "f.yaml:1: instructions: `#1` is a comment"),
]


@pytest.mark.parametrize(("text", "words"), CUT_TASKS)
def test_a_text_of_a_task_that_a_comment_cuts_off_is_refused(text: str, words: str) -> None:
    parsed = parse_task_file(text.encode(), "f.yaml")

    assert parsed.items == ()
    assert parsed.problems[0].render("f.yaml").startswith(words)


def test_the_other_problems_are_told_as_well() -> None:
    parsed = parse_task_file(b"tags: a #2\nproirity: high\ninstructions: #1\n", "f.yaml")

    assert [problem.field for problem in parsed.problems] == ["tags", "proirity", "instructions"]


HONEST = """\
# Nightly
name: nightly  # as the others are called
instructions: |  # what to do
  Fix issue #42, and # never touch prod
expected_output: "a fix for #42"  # short
priority: high # because
working_dir: ~/src/shop # the shop
timeout: 45m #long
agent: {type: claude} # cheap
max_turns: 40 # enough
approval: true # for once
check: # quick ones first
  - "make test" # all
  # - make lint
  - [grep, x, 'a #b'] # there
tags: [a, b] # both
depends_on:
  - other # which is first
env:
  LEVEL: debug # noisy
"""


def test_a_comment_that_cuts_nothing_off_is_one() -> None:
    parsed = parse_task_file(HONEST.encode(), "f.yaml")

    assert parsed.problems == ()
    assert parsed.items[0].instructions == "Fix issue #42, and # never touch prod"


OTHERS = [
    "instructions: Fix it\n# why\nname: a\n",
    'instructions: "Fix it"\n  # in short\nname: a\n',
    "instructions: |\n  Fix it\n# why\nname: a\n",
    "instructions: Fix it\n# why\n\n# and what\nname: a\n",
    "instructions: Fix it\n# of the environment\nenv:\n  # noisy\n  LEVEL: debug\n",
    "instructions: |\n  Fix it\n  # Rules\nname: a\n",
    "name: a\n  # as ever\ninstructions: Fix it\n",
]


@pytest.mark.parametrize("text", OTHERS)
def test_so_is_one_that_is_indented_like_a_key(text: str) -> None:
    assert parse_task_file(text.encode(), "f.yaml").problems == ()


def test_so_is_one_in_brackets_and_one_like_a_dash() -> None:
    text = "id: a\ndescription: x\nskills:\n- id: b\n  name: c\n  description: d\n  # new\n  examples: {}\n"
    for examples in ("[\n    Sum up,\n    # Sum down,\n    Go\n  ]", "\n  - Sum up\n  # - Sum down\n  - Go"):
        assert parse_card_file(text.format(examples).encode(), "f.yaml").problems == ()


def test_the_front_matter_of_markdown_is_yaml() -> None:
    parsed = parse_task_file(b"---\nname: a # b\ncheck: make #1\n---\nFix #42 # now\n", "f.md")

    assert [(problem.line, problem.field) for problem in parsed.problems] == [(3, "check")]


def test_the_text_of_markdown_is_no_yaml() -> None:
    parsed = parse_task_file(b"---\nname: a # b\n---\nFix #42 # now\n", "f.md")

    assert parsed.problems == ()
    assert parsed.items[0].instructions == "Fix #42 # now"


FOLDED = [
    "check:\n  true\n  false\n",
    "check: >\n  true\n  false\n",
    "check:\n- 'true\n  false'\n",
    "check: true\n  false\n",
]


@pytest.mark.parametrize("check", FOLDED)
def test_commands_that_yaml_joins_are_refused(check: str) -> None:
    parsed = parse_task_file(f"instructions: >\n  several\n  lines\n{check}".encode(), "f.yaml")

    assert len(parsed.problems) == 1
    assert "is written in several lines, which YAML joins to one command" in parsed.problems[0].message
    assert parsed.problems[0].remedy is not None
    assert "`|`" in parsed.problems[0].remedy


CUT_CARDS = [
    ("id: a\ndescription: Knows issue #42 and C #.\n", "f.yaml:2: description: `#42 and C #.` is a comment"),
    ("id: a\ndescription: Reviews\n  # but not docs\n", "f.yaml:2: description: `# but not docs` is a comment"),
    (
        "id: a\ndescription: x\nskills:\n- id: b\n  name: c\n  examples:\n  - Sum up\n    # and down\n  - Go\n",
        "f.yaml:7: skills[0].examples[0]: `# and down` is a comment",
    ),
    ("id: a\ndescription: Reviews # but not docs\n", "f.yaml:2: description: `# but not docs` is a comment"),
    ("id: a\ndescription: x\nprompt: Never touch #prod\n", "f.yaml:3: prompt: `#prod` is a comment"),
    ("id: a\ndescription: x\nname: Team #1\n", "f.yaml:3: name: `#1` is a comment"),
    ("id: a\ndescription: x\nkeywords: [\n  room #1\n  ]\n", "f.yaml:4: keywords[0]: `#1` is a comment"),
    (
        "id: a\ndescription: x\nskills:\n- id: b\n  name: c # d\n  description: e # f\n  examples: [g]\n",
        "f.yaml:6: skills[0].description: `# f` is a comment",
    ),
]


@pytest.mark.parametrize(("text", "words"), CUT_CARDS)
def test_a_text_of_a_card_that_a_comment_cuts_off_is_refused(text: str, words: str) -> None:
    parsed = parse_card_file(text.encode(), "f.yaml")

    assert parsed.items == ()
    assert [problem.render("f.yaml")[: len(words)] for problem in parsed.problems] == [words]


def test_settings_with_commands_that_a_comment_cuts_off_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "claudomator.yaml"
    file.write_text(
        "inbox: {paths: tasks} # here\nhttp:\n  listen: 127.0.0.1:0 #local\n"
        "agents:\n  claude: # mine\n    command: claude --model #1\n  codex:\n    command: codex # as usual\n"
        "policy:\n- name: a #1\n  deny: See #42\n"
    )

    with pytest.raises(ConfigError) as caught:
        load_config(file, {})

    assert [(problem.line, problem.field) for problem in caught.value.problems] == [
        (6, "agents.claude.command"),
        (11, "policy[0].deny"),
    ]


NUMBERS = [
    ("max_turns: .inf", "`.inf` is not a finite number; write digits only, without quotes"),
    ("budget: {usd: .inf}", "`.inf` is not a finite number; write a number, without quotes"),
    ("budget: {tokens: -.Inf}", "`-.Inf` is not a finite number; write digits only, without quotes"),
    ("budget: {usd: .nan}", "`.nan` is not a finite number; write a number, without quotes"),
    ("budget: {usd: 1e999}", "`1e999` is not a finite number; write a number, without quotes"),
    ("timeout: .inf", "`.inf` is not a finite number; write a number and a unit"),
    ("timeout: 1:30", "`1:30` is the number 90 to YAML; write a number and a unit"),
    ("max_turns: 010", "`010` is the number 8 to YAML; write 8"),
    ("budget: {usd: 1_000.5}", "`1_000.5` is the number 1000.5 to YAML; write 1000.5"),
    ("tags: [010]", '`010` is the number 8 to YAML; write "010"'),
    ("tags: 0x1F", '`0x1F` is the number 31 to YAML; write "0x1F"'),
    ("env: {BUILD: 1_000}", '`1_000` is the number 1000 to YAML; write "1_000"'),
    ("check: [[sleep, .inf]]", '`.inf` is not a finite number; write ".inf"'),
    ("expected_output: .inf", '`.inf` is not a finite number; write ".inf"'),
    ("name: 1:30", "`1:30` is the number 90 to YAML; use lower-case letters"),
    ("name: 0b11", '`0b11` is the number 3 to YAML; write "0b11"'),
    ("x-own: 010", '`010` is the number 8 to YAML; write 8 for the number, or "010" for the text'),
    ("x-own: .inf", "`.inf` is not a finite number; write another number, or put it in quotes if it is a text"),
    ("budget: {tokens: 99999999999999999999}", "is a number of more than 64 bits; write a smaller number"),
    ("tags: [99999999999999999999]", 'is a number of more than 64 bits; write "99999999999999999999"'),
    (f"max_turns: {'9' * 101}", "is a number of more than 100 characters; write a smaller number"),
]


@pytest.mark.parametrize(("line", "words"), NUMBERS)
def test_the_remedy_for_a_number_is_what_its_field_takes(line: str, words: str) -> None:
    (problem,) = parse_task_file(f"instructions: Fix it\n{line}\n".encode(), "f.yaml").problems

    assert f": {words}" in problem.render("f.yaml")
    assert problem.line == 2


def test_so_it_is_in_cards_and_settings(tmp_path: Path) -> None:
    card = b"id: a\ndescription: x\nmax_concurrent: 010\n"
    (problem,) = parse_card_file(card, "f.yaml").problems
    assert problem.remedy == "write 8"
    file = tmp_path / "claudomator.yaml"
    for text, remedy in (
        ("agents: {claude: {max_concurrent: 0x10}}", "write 16"),
        ("agents: {claude: {budget: {usd: .inf}}}", "write a number, without quotes"),
        ("budget: {usd: .inf}", "write a number, without quotes"),
        ("state_dir: 010", 'write "010"'),
        (f"agents: {{claude: {{max_concurrent: {10**20}}}}}", "write a smaller number"),
        (f"agents: {{claude: {{budget: {{usd: {10**20}}}}}}}", "write a smaller number"),
        (f"agents: {{claude: {{env: {{BUILD: {10**20}}}}}}}", f'write "{10**20}"'),
        (f"agents: {{claude: {{auto_select: {10**20}}}}}", "write true or false, without quotes"),
        (f"concurrency: {{total: {10**20}}}", "write a smaller number"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_config(file, {})
        assert caught.value.problems[0].remedy == remedy


@pytest.mark.parametrize("value", ["working_dir: ~", "add_dirs: [~]", "specialist: ~", "budget: {usd: ~}"])
def test_a_tilde_that_yaml_reads_as_nothing_is_refused(value: str) -> None:
    (problem,) = parse_task_file(f"instructions: x\n{value}\n".encode(), "f.yaml").problems
    assert (problem.line, problem.message) == (2, "`~` is an empty value to YAML")


@pytest.mark.parametrize("value", ["working_dir: ~/src", 'working_dir: "~"', "working_dir:", "working_dir: null"])
def test_any_other_tilde_and_an_empty_value_is_not(value: str) -> None:
    assert parse_task_file(f"instructions: x\n{value}\n".encode(), "f.yaml").problems == ()


@pytest.mark.parametrize("text", [r"\u200b\u200b", r"\u00a0 \u2060", r"\ufeff\t"])
def test_instructions_of_nothing_that_can_be_seen_are_refused(text: str) -> None:
    (problem,) = parse_task_file(f'instructions: "{text}"\n'.encode(), "f.yaml").problems
    assert problem.message in ("has no character that can be seen", "is empty")
