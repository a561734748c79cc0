"""Agent files of Claude Code as cards: what is applied, what is kept, and what is refused with line and remedy."""

import pytest

from claudomator_py.domain.agent import Tier
from claudomator_py.domain.card import NOT_APPLIED, Card
from claudomator_py.domain.errors import Problem
from claudomator_py.domain.task import PermissionMode, Permissions
from claudomator_py.routing.oddities import oddities
from claudomator_py.schema.cardfile import parse_card_file


def card_of(front_matter: str, body: str = "Do it.", name: str = "worker.md") -> Card:
    parsed_cards = parse_card_file(f"---\n{front_matter}\n---\n\n{body}\n".encode(), name)
    assert not parsed_cards.problems, [str(problem) for problem in parsed_cards.problems]
    (card,) = parsed_cards.items
    return card


def worker(field: str) -> Card:
    return card_of(f"name: worker\ndescription: Works.\n{field}")


def tools_of(field: str) -> tuple[str, ...] | None:
    permissions = worker(field).permissions
    return None if permissions is None else permissions.tools


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("color: purple", "purple"),
        ("skills: pdf, commit-style", "pdf, commit-style"),
        ("skills: [pdf, commit-style]", ["pdf", "commit-style"]),
        ("maxTurns: 12", 12),
        ("effort: high", "high"),
        ("memory: project", "project"),
        ("mcpServers:\n- github\n- {db: {command: dbmcp}}", ["github", {"db": {"command": "dbmcp"}}]),
        (
            "hooks: {PreToolUse: [{matcher: Bash, hooks: [{type: command, command: ./guard}]}]}",
            {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard"}]}]},
        ),
        ("background: true", True),
        ("isolation: worktree", "worktree"),
        ("initialPrompt: Begin with the tests.", "Begin with the tests."),
        ("permissionMode: bypassPermissions", "bypassPermissions"),
        ("permissionMode: acceptEdits", "acceptEdits"),
        ("permissionMode: dontAsk", "dontAsk"),
        ("omitClaudeMd: true", True),
        ("model: gpt-9", "gpt-9"),
        ("category: quality", "quality"),
    ],
)
def test_what_nothing_here_follows_is_kept_and_named(field: str, value: object) -> None:
    card = worker(field)
    key = field.partition(":")[0]
    assert card.extra["agent_file"] == {key: value}
    assert card.permissions is None
    (odd,) = oddities(card, {card.id: card})
    assert odd.text == f"its agent file says `{key}`, which is kept and not applied"


@pytest.mark.parametrize(
    ("model", "tier"),
    [
        ("haiku", Tier.FAST),
        ("sonnet[1m]", Tier.BALANCED),
        ("claude-sonnet-4-5-20250929", Tier.BALANCED),
        ("Claude Sonnet 4", Tier.BALANCED),
        ("claude-opus-4-8", Tier.POWERFUL),
        ("anthropic/claude-3.5-haiku", Tier.FAST),
        ("fable", Tier.POWERFUL),
        ("inherit", None),
        ("Inherit", None),
        ("", None),
    ],
)
def test_a_model_is_the_tier_of_its_family(model: str, tier: Tier | None) -> None:
    card = worker(f"model: {model}")
    assert (card.default_tier, card.extra) == (tier, {})


@pytest.mark.parametrize(
    ("field", "tools"),
    [
        ("tools: Read, Grep,Glob", ("Read", "Grep", "Glob")),
        ("tools: Read Grep", ("Read", "Grep")),
        ("tools: Agent(worker, researcher), Read", ("Agent(worker, researcher)", "Read")),
        ("tools: Bash(git diff:*, git log:*)", ("Bash(git diff:*, git log:*)",)),
        ("tools: [Read, Bash(git diff:*)]", ("Read", "Bash(git diff:*)")),
        ("tools: [Agent(worker, researcher), Read]", ("Agent(worker, researcher)", "Read")),
        ("tools:\n- Read\n- Bash(npm run test:*)\n", ("Read", "Bash(npm run test:*)")),
        ("tools: Read, Bash, Read", ("Read", "Bash")),
        ("tools: Bash(npm test", ("Bash(npm test",)),
        ("tools:", ()),
        ("tools: ''", ()),
        ("tools: []", ()),
        ("tools: >\n  Read,\n  Grep", ("Read", "Grep")),
        ("tools: Read，Grep、Glob", ("Read", "Grep", "Glob")),  # noqa: RUF001 - commas of full width
        ("tools: '*'", None),
        ("tools: *", None),
    ],
)
def test_tools_are_the_only_ones_and_none_is_allowed(field: str, tools: tuple[str, ...] | None) -> None:
    assert tools_of(field) == tools
    permissions = worker(field).permissions
    assert permissions is None or permissions == Permissions(tools=tools)


def test_what_takes_freedom_away_is_applied() -> None:
    card = worker("disallowedTools: Write, Edit, Write\npermissionMode: plan")
    assert card.permissions == Permissions(mode=PermissionMode.PLAN, disallowed_tools=("Write", "Edit"))
    assert card.extra == {}


@pytest.mark.parametrize(
    "description",
    [
        "Reviews code. Examples: 'look at this': reviewed",
        "Use it for: migrations, indexes",
        "* any task",
        "@mentions and `code`",
        "50% faster: measured",
        '"Quoted" first: then more',
        "[draft] reviews: all of them",
        "C# and C:\\src: both",
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_description_without_quotation_marks_is_read(description: str, line_break: str) -> None:
    text = f"---\nname: worker\ndescription: {description}\nmodel: opus\n---\nDo it.\n".replace("\n", line_break)
    parsed_cards = parse_card_file(b"\xef\xbb\xbf" + text.encode(), "worker.md")
    assert not parsed_cards.problems
    (card,) = parsed_cards.items
    assert (card.description, card.default_tier) == (description, Tier.POWERFUL)


def test_a_description_goes_on_to_the_next_field() -> None:
    card = card_of(
        "name: worker\n"
        "description: Use it when done. Examples:\\n\\n<example>\\nContext: a fix\n"
        'user: "Is it right?"\n'
        "<commentary>\n"
        "It is.\n"
        "</commentary>\n"
        "tools: Read\n"
        "model: haiku"
    )
    assert card.description.startswith("Use it when done. Examples:\n\n<example>\nContext: a fix\nuser: ")
    assert card.description.endswith("</commentary>")
    assert (card.permissions, card.default_tier) == (Permissions(tools=("Read",)), Tier.FAST)


def test_tabs_indent_what_yaml_would_not_let_them() -> None:
    assert tools_of("tools:\n\t- Read\n\t- Grep") == ("Read", "Grep")
    assert card_of("name: worker\ndescription: |\n\tUses: it.").description == "Uses: it."


def test_all_of_it_may_be_indented() -> None:
    card = card_of("  name: worker\n  description: Use it: now\n  tools:\n    - Read")
    assert (card.id, card.description, card.permissions) == ("worker", "Use it: now", Permissions(tools=("Read",)))


@pytest.mark.parametrize("number", ["0x10", "010", "1_000", "1:30", "0b11", "9" * 200])
def test_a_number_that_people_would_not_read_so_is_text(number: str) -> None:
    card = worker(f"code: {number}")
    assert (card.description, card.extra) == ("Works.", {NOT_APPLIED: {"code": number}})


@pytest.mark.parametrize(
    ("name", "filename", "card_id", "title"),
    [
        ("code-reviewer", "any.md", "code-reviewer", "code-reviewer"),
        ("Code Reviewer", "Reviewer.md", "reviewer", "Code Reviewer"),
        ("代码审查", "审查.md", "agent-", "代码审查"),
        (None, "Code Reviewer.md", "code-reviewer", "code-reviewer"),
    ],
)
def test_an_id_is_the_name_or_else_that_of_the_file(name: str | None, filename: str, card_id: str, title: str) -> None:
    card = card_of(f"name: {name}\ndescription: D." if name else "description: D.", name=filename)
    assert card.id.startswith(card_id)
    assert card.title == title


def test_a_long_prompt_is_kept_whole() -> None:
    prompt = "Look again. " * 6_000
    assert card_of("name: worker\ndescription: D.", prompt).system_prompt == prompt.rstrip()


def problem(front_matter: str) -> Problem:
    (problem,) = parse_card_file(f"---\n{front_matter}\n---\nDo it.\n".encode(), "worker.md").problems
    assert problem.remedy
    return problem


@pytest.mark.parametrize(
    ("front_matter", "line", "field"),
    [
        ("name: worker", 2, "description"),
        ("name: worker\ndescription: D.\ntools: {Read: true}", 4, "permissions.tools"),
        ("name: worker\ndescription: D.\ntools: 3", 4, "permissions.tools"),
        ("name: worker\ndescription: D.\ntools: true", 4, "permissions.tools"),
        ("name: worker\ndescription: D.\ndisallowedTools: 1.5", 4, "permissions.disallowed_tools"),
        ("name: worker\ndescription: D.\nvisibilty: private", 4, "visibilty"),
        ("- name: worker\n- description: D.", 2, None),
    ],
)
def test_what_is_refused_has_its_line(front_matter: str, line: int, field: str | None) -> None:
    result = problem(front_matter)
    assert (result.line, result.field) == (line, field)


def test_a_card_of_ours_in_markdown_stays_what_it_says() -> None:
    skill = "skills: [{id: taps, name: Taps}]\n"
    card = worker(f"{skill}permissions: {{allowed_tools: [Bash]}}\nvisibility: private\nx-team: blue")
    assert card.permissions == Permissions(allowed_tools=("Bash",))
    assert [skill.id for skill in card.skills] == ["taps"]
    assert card.extra == {"x-team": "blue"}


@pytest.mark.parametrize(
    ("line", "restricts"), [("tools: Read, Grep", True), ("permissionMode: plan", True), ("", False)]
)
def test_what_an_agent_file_restricts_holds_where_somebody_addresses_the_agent(line: str, restricts: bool) -> None:
    text = f"---\nname: keeper\ndescription: Keeps.\n{line}\n---\nKeep.\n"
    (card,) = parse_card_file(text.encode(), "keeper.md").items
    assert card.restricts is restricts
