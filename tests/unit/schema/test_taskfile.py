"""Task files: from bytes to tasks or problems."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.errors import Problem
from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.documents import ParsedFile, is_document
from claudomator_py.schema.taskfile import (
    content_hash,
    default_task_name,
    parse_task,
    parse_task_file,
    render_problems,
    to_document,
)

EXAMPLE = b"""\
# Seen by two customers.
name: fix-login-redirect
instructions: |
  The login page redirects twice. Find out why: fix it.
working_dir: ~/src/shop
agent: {type: claude, tier: powerful}
depends_on: [write-login-tests]
not_before: 2026-12-01T08:00:00+01:00
timeout: 45m
retry: {max_attempts: 3, backoff: 1m}
check: [make test]
env: {CI: "1"}
x-ticket: 4711
"""


def specs(data: bytes | str, filename: str = "fix-it.yaml") -> tuple[TaskSpec, ...]:
    parsed = parse_task_file(data.encode() if isinstance(data, str) else data, filename)
    assert parsed.problems == ()
    return parsed.items


def problems(data: bytes | str, filename: str = "f.yaml") -> list[str]:
    parsed = parse_task_file(data.encode() if isinstance(data, str) else data, filename)
    assert parsed.items == ()
    return [problem.render(filename) for problem in parsed.problems]


def test_a_file_with_one_task() -> None:
    (spec,) = specs(EXAMPLE)

    assert spec.name == "fix-login-redirect"
    assert spec.instructions == "The login page redirects twice. Find out why: fix it."
    assert spec.timeout == 2_700_000
    assert spec.extra == {"x-ticket": 4711}


def test_comments_order_and_style_are_no_content() -> None:
    rewritten = """
x-ticket: 4711   # the tracker's number
env:
  CI: '1'
check: "make test"
timeout: "0h45m"
retry: {backoff: 60s}
not_before: "2026-12-01T07:00:00Z"
instructions: "The login page redirects twice. Find out why: fix it."
depends_on:
- write-login-tests
agent:
  tier: powerful
  type: claude
working_dir: "~/src/shop"
name: fix-login-redirect
priority: normal
"""
    assert content_hash(specs(EXAMPLE)[0]) == content_hash(specs(rewritten)[0])


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("fix-it.yaml", "fix-it"),
        ("Fix Login (2).yml", "fix-login-2"),
        ("Größe_ändern.md", "groe_andern"),
        ("a.b.json", "a.b"),
        ("-x-.yaml", "x"),
        ("x" * 150 + ".yaml", "x" * 100),
        ("日本.yaml", None),
        (".yaml", None),
    ],
)
def test_the_stem_names_the_task(filename: str, name: str | None) -> None:
    assert default_task_name(filename) == name
    if name is not None:
        assert isinstance(parse_task({"instructions": "x"}, default_name=name), TaskSpec)


def test_a_name_of_its_own_wins_over_the_stem() -> None:
    assert [spec.name for spec in specs("name: own\ninstructions: x", "日本.yaml")] == ["own"]


def test_several_documents_are_several_tasks() -> None:
    text = "---\nname: a\ninstructions: x\n---\nname: b\ninstructions: y\ndepends_on: [a]\n---\n# nothing more\n"
    assert [(spec.name, spec.depends_on) for spec in specs(text)] == [("a", ()), ("b", ("a",))]


def test_a_single_document_after_an_empty_one_needs_no_name() -> None:
    assert [spec.name for spec in specs("---\n# nothing\n---\ninstructions: x\n")] == ["fix-it"]


def test_a_file_is_accepted_whole_or_not_at_all() -> None:
    text = "name: a\ninstructions: x\n---\nname: b\ninstructions: y\ntimout: 5m\n---\nname: c\ninstructions: z\n"
    parsed = parse_task_file(text.encode(), "f.yaml")

    assert parsed.items == ()
    (problem,) = parsed.problems
    assert problem.render("f.yaml") == "f.yaml:6: timout: is not a known key; did you mean `timeout`?"
    assert problem.document == 2


PROBLEMS: list[tuple[bytes | str, list[str]]] = [
    ("", ["f.yaml: there is no task in the file; write `instructions: ...`"]),
    ("# only\n# comments\n", ["f.yaml: there is no task in the file; write `instructions: ...`"]),
    ("---\n---\n", ["f.yaml: there is no task in the file; write `instructions: ...`"]),
    ("null", ["f.yaml: there is no task in the file; write `instructions: ...`"]),
    ("- a\n- b\n", ["f.yaml:1: is a list, but a task is a mapping; write `key: value` lines, and `---` between tasks"]),
    (
        "\nFix the login.\n",
        ["f.yaml:2: is the text `Fix the login.`, but a task is a mapping; write `key: value` lines, and `---` be"],
    ),
    ("42", ["f.yaml:1: is the number 42, but a task is a mapping; write"]),
    ("name: f\n", ["f.yaml:1: instructions: is missing; add it"]),
    ("instructions: x\nname: no\n", ["f.yaml:2: name: is the truth value false (YAML also reads yes, no, on and off"]),
    (
        "instructions: x\ndepends-on: [a]\nagent:\n  type: claude\n  modle: opus\ncheck:\n  - make\n  - a && b\n",
        [
            "f.yaml:2: depends-on: is not a known key; did you mean `depends_on`?",
            "f.yaml:5: agent.modle: is not a known key; did you mean `model`?",
            'f.yaml:8: check[1]: `&&` needs a shell, and none is used here; write [sh, -c, "a && b"]',
        ],
    ),
    (
        "x-of: us\ntasks:\n  - {name: a, instructions: x}\n  - {name: b, prompt: y}\n",
        [
            "f.yaml:2: tasks: contains 2 tasks, but a document is one task; write the keys of each at the top level",
        ],
    ),
    (
        "jobs: {a: {instructions: x}}\n",
        [
            "f.yaml:1: jobs: contains 1 task, but a document is one task; write the keys of each at the top level",
        ],
    ),
    (
        "task: {name: a, instructions: x}\n",
        ["f.yaml:1: task: contains a task, but a document is the task itself; write its keys at the top level"],
    ),
    (
        "tasks: [{name: a}]\n",
        ["f.yaml:1: tasks: is not a known key; did you mean `tags`?", "f.yaml:1: instructions: is missing; add it"],
    ),
    ("instructions: x\r\nfoo: 1\r\n", ["f.yaml:2: foo: is not a known key; write one of add_dirs, agent, "]),
    (
        "name: a\ninstructions: x\n---\ninstructions: y\n",
        ["f.yaml:4: name: is missing, and the file has several documents; give each of them a name"],
    ),
    (
        "name: a\ninstructions: x\n---\ninstructions: y\nname: a\n",
        ["f.yaml:5: name: is the name in line 1, too; give each document a name of its own"],
    ),
    ("name: a\ninstructions: x\n---\n- b\n", ["f.yaml:4: is a list, but a task is a mapping"]),
    ("instructions: x\nnot_before: 2026-12-01 08:00:00\n", ["f.yaml:2: not_before: does not say in which time zone"]),
    (
        "instructions: x\nenv:\n  MODE: 0755\n",
        ['f.yaml:3: env.MODE: `0755` is the number 493 to YAML; write "0755"'],
    ),
    ("instructions: x\ntimeout: 1:30\n", ["f.yaml:2: timeout: `1:30` is the number 90 to YAML; write a number"]),
    (b"instructions: gr\xfcn", ["f.yaml:1:17: the byte 0xfc is not UTF-8; save the file as UTF-8"]),
    (b"\x7fELF\x02\x01\x01\x00", ["f.yaml:1: contains a NUL byte, so it is not a text file"]),
]


@pytest.mark.parametrize(("data", "expected"), PROBLEMS)
def test_problems_name_line_field_and_remedy(data: bytes | str, expected: list[str]) -> None:
    results = problems(data)

    assert len(results) == len(expected)
    for line, words in zip(results, expected, strict=True):
        assert line.startswith(words)
        assert "; " in line


def test_a_name_that_cannot_come_from_the_stem_is_asked_for() -> None:
    assert problems("instructions: x", "日本.yaml") == [
        "日本.yaml:1: name: is missing, and the file's own name makes none; add `name: ...`"
    ]


def test_markdown_is_front_matter_and_instructions() -> None:
    text = "---\r\npriority: high\r\n---\r\n\r\n# Fix it\r\n\r\n    code\r\n---\r\nmore\r\n\r\n"
    (spec,) = specs(text, "fix-it.md")

    assert spec.name == "fix-it"
    assert spec.priority.label == "high"
    assert spec.instructions == "# Fix it\n\n    code\n---\nmore"


def test_markdown_needs_no_fields() -> None:
    assert [spec.instructions for spec in specs("---\n---\nFix it.", "a.MD")] == ["Fix it."]


MARKDOWN = [
    ("Fix it.\n", ["f.md:1: a Markdown task begins with a `---` line, its fields and another `---` line; add them"]),
    ("", ["f.md:1: a Markdown task begins with a `---` line"]),
    ("---\nname: a\nFix it.\n", ["f.md:1: the `---` of the first line has no second; add a `---` line"]),
    ("---\nname: a\n---\n\n", ["f.md:3: instructions: there is no text below the front matter; write there what to"]),
    (
        "---\ninstructions: x\n---\n\ny\n",
        ["f.md:2: instructions: appears twice: here, and as the text from line 5; remove one of them"],
    ),
    ("---\nname: a\ntimout: 5m\n---\nx\n", ["f.md:3: timout: is not a known key; did you mean `timeout`?"]),
    ("---\nname: a\ntags: [b\n---\nx\n", ["f.md:4:1: is not YAML: "]),
    ("---\n- a\n---\nx\n", ["f.md:2: is a list, but a task is a mapping"]),
    ("---\nname: a\n---\n\nx\x07y\n", ["f.md:5: instructions: contains the control character U+0007; remove it"]),
]


@pytest.mark.parametrize(("text", "expected"), MARKDOWN)
def test_problems_of_markdown_have_the_lines_of_the_file(text: str, expected: list[str]) -> None:
    results = problems(text, "f.md")

    assert len(results) == len(expected)
    assert results[0].startswith(expected[0])


@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_is_read_too(ascii_only: bool) -> None:
    instructions = 'a 😀 / \\ "b" \\ud83d\n\tc \u2028 d \u2029 e'
    document = {"name": "a", "instructions": instructions, "x-n": [1, -2.5, None, True]}
    text = json.dumps(document, indent="\t", ensure_ascii=ascii_only)

    (spec,) = specs(text, "a.json")

    assert spec.instructions == instructions
    assert spec.extra == {"x-n": [1, -2.5, None, True]}


@pytest.mark.parametrize(
    "name", ["a.yaml", "a.yml", "A.YAML", "a.md", "a.json", "a b.yaml", "a.b.yaml", "error.yaml", "README-task.md"]
)
def test_these_are_task_files(name: str) -> None:
    assert is_document(name)


@pytest.mark.parametrize(
    "name",
    [
        ".foo.yaml.swp",
        ".foo.yaml.swx",
        "foo.yaml~",
        "#foo.yaml#",
        ".#foo.yaml",
        "4913",
        "foo.tmp",
        "foo.yaml.tmp",
        "foo.yaml.part",
        "foo.yaml.crdownload",
        "foo.yaml.error.txt",
        ".foo.yaml",
        ".yaml",
        "~foo.yaml",
        "foo",
        "foo.txt",
        "yaml",
        "README.md",
        "",
    ],
)
def test_these_are_none(name: str) -> None:
    assert not is_document(name)


def test_the_note_names_every_problem_and_cannot_grow_without_end() -> None:
    note = render_problems("a\n.yaml", [Problem(line=n, field="x", message="bad", remedy="mend") for n in range(1, 81)])

    assert note.splitlines()[0] == "a\\n.yaml was not accepted, and nothing in it was run."
    assert "a\\n.yaml:50: x: bad; mend\n... and 30 more\n" in note
    assert "Fix the file and save it" in note


def accepted_or_refused(parsed: ParsedFile[TaskSpec]) -> bool:
    return bool(parsed.items) != bool(parsed.problems)


@given(st.binary(max_size=300), st.sampled_from(["a.yaml", "a.md", "a.json", "日本.yaml", ""]))
def test_no_bytes_raise(data: bytes, filename: str) -> None:
    assert accepted_or_refused(parse_task_file(data, filename))


FIELDS = ["name:", "instructions:", "agent:", "check:", "env:", "x-a:", "tags:", "a", "b c", "é", "😀"]
MARKS = ["- ", "? ", ": ", "{", "}", "[", "]", ",", "#", "'", '"', "\\", ">", "|", "{{", "@", "`", "---\n", "...\n"]
SPECIAL = ["&a ", "*a", "*b", "!!str ", "!x ", "<<", "~", "no", "1:30", ".inf", "0x1f", "2026-01-01", "%TAG ! x\n"]
BLANKS = ["\n", "\n  ", "\n\t", "\ufeff", "\x07", "\x85"]
YAML_PIECES = st.sampled_from(FIELDS + MARKS + SPECIAL + BLANKS)


@given(st.lists(YAML_PIECES, max_size=40), st.sampled_from(["a.yaml", "a.md", "a.json"]))
def test_no_heap_of_yaml_raises(pieces: list[str], filename: str) -> None:
    parsed = parse_task_file("".join(pieces).encode(), filename)

    assert accepted_or_refused(parsed)
    for problem in parsed.problems:
        assert problem.render(filename).isprintable()


@pytest.mark.parametrize("filename", ["a.yaml", "a.md"])
def test_no_prefix_of_a_file_raises(filename: str) -> None:
    data = EXAMPLE if filename == "a.yaml" else b"---\npriority: high\ntags: [a, b]\n---\nFix \xc3\xa4 it.\n"

    outcomes = [bool(parse_task_file(data[:length], filename).items) for length in range(len(data) + 1)]

    # Many a prefix is a valid task: nothing in the text tells a half-written file from a whole one.
    assert outcomes[-1]
    assert 0 < sum(outcomes[:-1]) < len(data)


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
DURATIONS = st.sampled_from(["1ms", "90s", "45m", "1h30m", "2d"])
DOCUMENTS = st.fixed_dictionaries(
    {"name": NAMES, "instructions": WORDS.filter(lambda text: not text.isspace())},
    optional={
        "working_dir": WORDS.map(lambda text: f"~/{text}"),
        "agent": st.fixed_dictionaries({"type": WORDS}, optional={"model": WORDS, "strict": st.booleans()}),
        "priority": st.sampled_from(["low", "normal", "high", "urgent"]),
        "timeout": DURATIONS,
        "retry": st.fixed_dictionaries({}, optional={"max_attempts": st.integers(1, 100), "backoff": DURATIONS}),
        "not_before": st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
        "check": st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=3),
        "env": st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), WORDS, max_size=3),
        "tags": st.lists(WORDS, max_size=3, unique=True),
        "x-a": JSON,
    },
)


class QuotingDumper(yaml.SafeDumper):
    """Writes texts in quotes: PyYAML leaves them off ``1e5``, which is a text in YAML 1.1 and a number in JSON."""


QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


@pytest.mark.parametrize("text", ["1e5", "0E0", "-2.5e-3"])
def test_a_text_that_json_takes_for_a_number_has_to_be_quoted(text: str) -> None:
    (problem,) = parse_task_file(f"instructions: {text}\n".encode(), "x.yaml").problems
    assert (problem.line, problem.field) == (1, "instructions")
    assert "quotes" in (problem.remedy or "")
    (spec,) = parse_task_file(f'instructions: "{text}"\n'.encode(), "x.yaml").items
    assert spec.instructions == text


@given(DOCUMENTS)
def test_a_task_survives_every_way_of_writing_it(document: dict[str, object]) -> None:
    spec = parse_task(document)
    assert isinstance(spec, TaskSpec)

    again = parse_task(to_document(spec))
    as_json = parse_task_file(json.dumps(document).encode(), "x.json")
    as_yaml = parse_task_file(yaml.dump(document, Dumper=QuotingDumper, allow_unicode=True).encode(), "x.yaml")

    assert again == spec
    assert as_json.problems == as_yaml.problems == ()
    assert {content_hash(spec) for spec in as_json.items + as_yaml.items} == {content_hash(spec)}


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("worktree: true", "isolation: worktree"),
        ("Work-Tree: true", "isolation: worktree"),
        ("repo: ~/src", "write `working_dir`"),
        ("title: x", "write `name`"),
        ("at: 07:00", "not_before: ..."),
        ("labels: [a]", "write `tags`"),
    ],
)
def test_what_others_call_it_is_answered_with_its_own_name(line: str, place: str) -> None:
    (problem,) = problems(f"instructions: x\n{line}\n")
    assert place in problem
