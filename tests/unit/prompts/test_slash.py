"""Texts that begin with a slash: which of them are commands of the agent that gets them."""

from pathlib import Path

import pytest

from claudomator_py.agents.kinds import info_of
from claudomator_py.domain.handoff import SlashUse
from claudomator_py.prompts.slash import SlashPlace, slash_text

TEXT = "Look at the pull request $ARGUMENTS.\n"


def put(path: Path, text: str = TEXT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    return folder


MOVING = ("CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "QWEN_HOME", "XDG_CONFIG_HOME")


def use(
    text: str, kind: str, work: Path | None, home: Path, *, fenced: bool = False, alone: bool = True, moved: str = ""
) -> tuple[SlashUse, str | None] | None:
    """How that kind gets the text, and by which file."""
    folder = None if work is None else str(work)
    name, *command = kind.split(":")
    place = SlashPlace(
        info_of(name).of(tuple(command)), folder, {"HOME": str(home), **dict.fromkeys(MOVING, moved)}, fenced
    )
    slash = slash_text(text, place, alone=alone)
    return None if slash is None else (slash.use, slash.file)


@pytest.mark.parametrize(
    ("kind", "file", "text"),
    [
        ("claude", ".claude/commands/review-pr.md", "/review-pr 12"),
        ("claude", ".claude/commands/review-pr.md", "/review-pr"),
        ("claude", ".claude/commands/review-pr.md", "/review-pr\n12\nand 13"),
        ("claude", ".claude/commands/gh/pr/review.md", "/gh:pr:review 12"),
        ("claude", ".claude/skills/triage/SKILL.md", "/triage"),
        ("claude", ".claude/commands/login.md", "/login twice"),
        ("gemini", ".gemini/commands/gh/review.toml", "/gh:review 12"),
        ("qwen", ".qwen/commands/review.toml", "/review 12"),
        ("qwen", ".qwen/commands/review.md", "/review 12"),
        ("qwen", ".qwen/skills/triage/SKILL.md", "/triage"),
        ("qwen", ".agents/skills/triage/SKILL.md", "/triage"),
        ("acp:claude-agent-acp", ".claude/commands/gh/review.md", "/gh:review 12"),
        ("acp:qwen", ".qwen/commands/gh/review.toml", "/gh:review 12"),
        ("acp:opencode", ".claude/skills/triage/SKILL.md", "/triage"),
        ("acp:copilot", ".agents/skills/triage/SKILL.md", "/triage"),
    ],
)
def test_a_file_of_the_project_or_the_home_makes_it_a_command(
    kind: str, file: str, text: str, work: Path, home: Path
) -> None:
    assert use(text, kind, work, home) == (SlashUse.UNKNOWN, None)
    put(home / file)
    assert use(text, kind, work, home) == use(text, kind, None, home) == (SlashUse.COMMAND, f"~/{file}")
    put(work / file)
    assert use(text, kind, work, home) == (SlashUse.COMMAND, file)


@pytest.mark.parametrize(
    "text",
    [
        " /review 12",
        "/Review 12",
        "/review, 12",
        "/gh/review 12",
        "/review:gh",
        "/../secret",
        "/..:secret",
        "/",
        "//",
        "/" + 300 * "r",
        "/triage.md",
        "/hidden:review",
        "/commands:review",
    ],
)
def test_no_other_text_is_one(text: str, work: Path, home: Path) -> None:
    for name in ("review", "gh/review", "../secret", ".hidden/review"):
        put(work / ".claude" / "commands" / f"{name}.md")
    (work / ".claude" / "commands" / "triage.md.md").mkdir()
    assert use(text, "claude", work, home) == (SlashUse.UNKNOWN, None)


def test_a_text_without_a_slash_and_a_program_without_a_model_are_left_alone(work: Path, home: Path) -> None:
    put(work / ".claude/commands/review.md")
    assert use("review /review", "claude", work, home) is None
    assert use("/review", "command", work, home) is None


def test_opencode_over_acp_has_two_homes_and_slashes_in_names(work: Path, home: Path) -> None:
    put(home / ".config/opencode/commands/gh/review.md")
    assert use("/gh:review", "acp:opencode", work, home) == (SlashUse.UNKNOWN, None)
    assert use("/gh/review", "acp:opencode", work, home) == (
        SlashUse.COMMAND,
        "~/.config/opencode/commands/gh/review.md",
    )
    put(work / ".opencode/command/gh/review.md")
    assert use("/gh/review", "acp:opencode", work, home) == (SlashUse.COMMAND, ".opencode/command/gh/review.md")
    file = str(work / ".opencode/command/gh/review.md")
    assert use("/gh/review", "acp:opencode", work / "src", home) == (SlashUse.COMMAND, file)


def test_opencode_over_acp_also_looks_in_its_folder_of_the_home_and_in_one_that_a_variable_names(
    work: Path, home: Path, tmp_path: Path
) -> None:
    """All three were seen to count at once, with opencode 1.18.33."""
    place = SlashPlace(
        info_of("acp").of(("opencode",)),
        str(work),
        {"HOME": str(home), "OPENCODE_CONFIG_DIR": str(tmp_path / "own"), "XDG_CONFIG_HOME": str(tmp_path / "xdg")},
        fenced=False,
    )
    for name, folder in (("a", home / ".opencode"), ("b", tmp_path / "own"), ("c", tmp_path / "xdg/opencode")):
        put(folder / f"commands/{name}.md")
        result = slash_text(f"/{name} it", place, alone=True)
        assert result is not None
        assert result.use is SlashUse.COMMAND


@pytest.mark.parametrize("kind", ["codex", "opencode", "copilot", "acp:gemini", "acp:codex-acp", "acp:cline"])
def test_a_kind_that_expands_none_has_none(kind: str, work: Path, home: Path) -> None:
    for folder in (".codex/prompts", ".opencode/command", ".copilot/commands", ".claude/commands"):
        put(work / folder / "review.md")
        put(home / folder / "review.md")
    assert use("/review", kind, work, home) == (SlashUse.UNKNOWN, None)


def test_claude_code_looks_up_to_the_top_of_the_repository(work: Path, home: Path) -> None:
    put(work / ".claude/commands/review.md")
    put(work.parent / ".claude/commands/outside.md")
    assert use("/review", "claude", work / "src" / "deep", home) == (
        SlashUse.COMMAND,
        str(work / ".claude/commands/review.md"),
    )
    assert use("/outside", "claude", work / "src", home) == (SlashUse.UNKNOWN, None)
    put(work / ".qwen/commands/review.md")
    assert use("/review", "qwen", work / "src", home) == (SlashUse.UNKNOWN, None)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("claude", ".claude/commands", "commands"),
        ("gemini", ".gemini/commands", ".gemini/commands"),
        ("qwen", ".qwen/commands", "commands"),
        ("acp:opencode", ".config/opencode/commands", "opencode/commands"),
    ],
)
def test_a_variable_moves_the_folder_of_the_home(
    kind: str, old: str, new: str, tmp_path: Path, work: Path, home: Path
) -> None:
    end = "toml" if kind == "gemini" else "md"
    put(home / old / f"old.{end}")
    put(tmp_path / "moved" / new / f"review.{end}")
    moved = str(tmp_path / "moved")
    file = str(tmp_path / "moved" / new / f"review.{end}")
    assert use("/review", kind, work, home, moved=moved) == (SlashUse.COMMAND, file)
    assert use("/old", kind, work, home, moved=moved) == (SlashUse.UNKNOWN, None)


@pytest.mark.parametrize(
    ("kind", "file", "body"),
    [
        ("claude", ".claude/commands/review.md", "The diff: !`git push` is here."),
        ("claude", ".claude/commands/review.md", "```!\ngit push\n```"),
        ("claude", ".claude/commands/review.md", "x" * ((1 << 20) + 1)),
        ("gemini", ".gemini/commands/review.toml", 'prompt = "!{git push}"'),
        ("qwen", ".qwen/commands/review.md", "The diff: !{git push}"),
    ],
)
def test_a_command_that_has_a_shell_run_is_none_behind_a_fence(
    kind: str, file: str, body: str, work: Path, home: Path
) -> None:
    put(work / file, body)
    assert use("/review", kind, work, home, fenced=True) == (SlashUse.FENCED, file)
    assert use("/review", kind, work, home) == (SlashUse.COMMAND, file)
    put(work / file)
    assert use("/review", kind, work, home, fenced=True) == (SlashUse.COMMAND, file)


def test_what_else_the_prompt_says_is_no_argument_of_a_command(work: Path, home: Path) -> None:
    put(work / ".claude/commands/review.md")
    assert use("/review", "claude", work, home, alone=False) == (SlashUse.WITH_MORE, ".claude/commands/review.md")


def test_a_command_of_gemini_cli_itself_hides_a_file_of_its_name(work: Path, home: Path) -> None:
    put(work / ".gemini/commands/init.toml")
    assert use("/init", "gemini", work, home) == (SlashUse.UNKNOWN, None)
