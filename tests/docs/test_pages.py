"""What the pages show is what happens: every block with commands is run, or says why it cannot be."""

import shutil
from pathlib import Path

import pytest

from claudomator_py.domain.card import Card
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.taskfile import parse_task_file
from claudomator_py.schema.validation import validate
from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import read_documents
from tests.docs.follow import follow
from tests.docs.page import steps_of
from tests.docs.terminal import COMMAND
from tests.warm.starter import WarmStarter

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("**/*.md"))]
FOLLOWED_ELSEWHERE = {"cluster.md"}
"""Their commands install packages: see ``test_cluster.py``."""
WITH_COMMANDS = [
    page for page in PAGES if page.name not in FOLLOWED_ELSEWHERE and any(step.commands for step in steps_of(page))
]


def _name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=_name)
def test_the_page_shows_what_happens(page: Path, tmp_path: Path, warm: WarmStarter) -> None:
    if "$ curl " in page.read_text() and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    # The page that everybody begins with is followed with the command as it is installed.
    assert follow(page, tmp_path / "home", command=COMMAND if page.name == "README.md" else warm.command) > 0


def test_the_tutorial_and_the_readme_are_among_them() -> None:
    assert {"README.md", "docs/tutorial.md"} <= {_name(page) for page in WITH_COMMANDS}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_yaml_block_is_a_task_file_a_card_or_a_configuration(page: Path) -> None:
    blocks = [step for step in steps_of(page) if step.language == "yaml" and step.kind != "not run"]
    # A page may show a mistake in a file, if it goes on to mend it.
    mended = {step.argument for step in blocks if step.kind == "file" and not _problem(step.body)}
    wrong = [
        f"{page.name}:{step.line}: {problem}"
        for step in blocks
        if (problem := _problem(step.body)) and step.argument not in mended
    ]
    assert not wrong


GUIDES = [page for page in PAGES if page.parent.name in ("docs", "how-to", "explanation")]


@pytest.mark.parametrize("page", GUIDES, ids=_name)
def test_nothing_is_done_that_a_reader_does_not_see(page: Path) -> None:
    lines = page.read_text().splitlines()
    hidden = [step for step in steps_of(page) if step.kind in ("run", "start daemon")]
    assert not hidden, "show what the page does besides its blocks"
    for step in steps_of(page):
        if step.kind not in ("file", "append"):
            continue
        # What a browser shows above the block: the paragraph before its comment.
        comment = lines.index(f"<!-- {step.kind}: {step.argument} -->", max(0, step.line - 3))
        above = "\n".join(lines[max(0, comment - 8) : comment])
        paragraph = above.rstrip("\n").rpartition("\n\n")[2]
        assert f"`{step.argument}`" in paragraph, f"{page.name}:{step.line}: say above it which file it is"


def _problem(body: list[str]) -> str | None:
    """Why the block is none of these; a part of a task file or a configuration may stand alone."""
    text = "\n".join([*body, ""])
    try:
        documents = read_documents(text)
    except BadText as bad:
        return str(bad.problem)
    if len(documents) == 1 and isinstance(documents[0].value, dict):
        if isinstance(validate(Card, documents[0].value, {}), Card):
            return None
        settings = parse_settings(documents[0].value)
        if not isinstance(settings, list):
            return None
    tasks = parse_task_file(text.encode(), "block.yaml")
    missing = [problem for problem in tasks.problems if not (problem.field == "instructions" and problem.line == 1)]
    return "; ".join(map(str, missing)) or None
