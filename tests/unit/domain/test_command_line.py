"""Commands written as text: what they are split into, and what only a shell could make of them."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.domain.command_line import BadCommand, commands_in, words_of
from claudomator_py.schema.taskfile import parse_task

SPLIT = [
    ("make test", ["make", "test"]),
    (r"""grep -q "two words" 'a > b' c\ d""", ["grep", "-q", "two words", "a > b", "c d"]),
    ("grep 'a|b' f", ["grep", "a|b", "f"]),
    ('pytest -k "a and not b"', ["pytest", "-k", "a and not b"]),
    ("[ -f x ]", ["[", "-f", "x", "]"]),
    (r"find . ! -name '*.py' -exec grep x {} \;", ["find", ".", "!", "-name", "*.py", "-exec", "grep", "x", "{}", ";"]),
    ("git diff HEAD~1 HEAD^ stash@{0}", ["git", "diff", "HEAD~1", "HEAD^", "stash@{0}"]),
    ("awk '{print $1, $2}' f", ["awk", "{print $1, $2}", "f"]),
    ("grep a$ f", ["grep", "a$", "f"]),
    (r'echo "a\$b" "\d"', ["echo", "a$b", r"\d"]),
    ('echo "costs 5$"', ["echo", "costs 5$"]),
    ("env CI=1 make a=b", ["env", "CI=1", "make", "a=b"]),
    ("run --since=12:00 file#1 'x y'#", ["run", "--since=12:00", "file#1", "x y#"]),
    ("'if' x", ["if", "x"]),
    ("printf '' \"\"", ["printf", "", ""]),
    ('bash -lc "test $(wc -l < f) -lt 20"', ["bash", "-lc", "test $(wc -l < f) -lt 20"]),
    ("make \\\n  test", ["make", "test"]),
    ("make \\\r\n  test", ["make", "test"]),
    ("echo a\u00a0b", ["echo", "a\u00a0b"]),
    ("sh -c 'a\nb'", ["sh", "-c", "a\nb"]),
]


@pytest.mark.parametrize(("text", "words"), SPLIT)
def test_words_are_what_a_shell_would_pass_on(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("word", [".[dev]", ".[dev,test]", "t.py::a[1]", "t.py::A::b[one]", ".a[0].b", "a[0]"])
def test_brackets_that_a_shell_would_leave_are_left(word: str) -> None:
    """What `pip install -e .[dev]`, `pytest t.py::a[1]` and `jq .a[0].b` are written with every day."""
    assert words_of(f"run {word}") == ["run", word]


NEEDS_SHELL = [
    *(
        "! grep -r TODO src",
        "~/bin/x",
        "~ann/bin/x",
        "run ~/x",
        "ls *.py",
        "ls file?",
        "ls [ab].txt",
        "ls src/[ab].txt",
        "ls file[12].txt",
        "ls file[0-9]",
        "ls file[!a]",
    ),
    *("test -n $NOTHING", 'test -n "$NOTHING"', "echo ${A:-b}", "echo $1", "echo $@", "echo $(date)", "echo `date`"),
    *('echo "`date`"', "echo $'a\\n'", "cp a.{txt,bak}", "touch {1..3}", "cd x", "cd x && make", "a || b", "a | b"),
    *(
        "a; b",
        "a;b",
        "make test &",
        "make&",
        "(make)",
        "a > f",
        "a >f",
        "a>f",
        "a 2>&1",
        "cat <f",
        "cat <<EOF",
        "a |& b",
    ),
    *("source .venv/bin/activate", ". ./env", "export A=1", "exit 0", "set -e", "eval x", "exec make", "ulimit -n 9"),
    *("if true; then a; fi", "for x in a b", "while true", "case x in", "{ make", "[[ -f x ]]", "function f", ": ${A}"),
    *("make test # the fast ones", "make # don't"),
]


@pytest.mark.parametrize("text", NEEDS_SHELL)
def test_what_needs_a_shell_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(BadCommand, match="needs a shell, and none is used here") as refused:
        words_of(text)

    assert refused.value.remedy.startswith("write [sh, -c, ")


@pytest.mark.parametrize("text", ["CI=1 make", "PATH+=:x make", "A=b"])
def test_a_variable_before_the_program_is_refused(text: str) -> None:
    with pytest.raises(BadCommand, match="which only a shell understands") as refused:
        words_of(text)

    assert "`env`" in refused.value.remedy
    assert "[sh, -c, " in refused.value.remedy


@pytest.mark.parametrize("text", ["# nothing", "\n# nothing\n\n", 'say "hello', "it's", "a\\", "-c"])
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(BadCommand):
        words_of(text)


LINES = [
    ("true\nfalse\n", (("true",), ("false",))),
    ("true\r\nfalse\r\n", (("true",), ("false",))),
    ("# build first\nmake\n\n  # then test\n  make test\n", (("make",), ("make", "test"))),
    ("make \\\n  test\nmake lint", (("make", "test"), ("make", "lint"))),
    ("sh -c '\n  a &&\n  b\n'\nmake", (("sh", "-c", "\n  a &&\n  b\n"), ("make",))),
    ("# don't panic\nmake", (("make",),)),
    (["make\nmake test", ["make", "a\nb"], "true"], (("make",), ("make", "test"), ("make", "a\nb"), ("true",))),
]


@pytest.mark.parametrize(("check", "commands"), LINES)
def test_a_check_has_one_command_a_line(check: object, commands: tuple[tuple[str, ...], ...]) -> None:
    parsed = parse_task({"name": "a", "instructions": "x", "check": check})

    assert not isinstance(parsed, list), parsed
    assert parsed.check == commands


SCRIPTS = [
    ("make &&\nmake test", "`&&` needs a shell", '[sh, -c, "set -e\\nmake &&\\nmake test"]'),
    (
        "for x in a b\ndo make $x\ndone\n",
        "`for` needs a shell",
        '[sh, -c, "set -e\\nfor x in a b\\ndo make $x\\ndone"]',
    ),
    ("cd src\nmake", "`cd` needs a shell", '[sh, -c, "set -e\\ncd src\\nmake"]'),
]


@pytest.mark.parametrize(("check", "message", "remedy"), SCRIPTS)
def test_a_script_is_refused_with_all_of_it_in_the_remedy(check: str, message: str, remedy: str) -> None:
    parsed = parse_task({"name": "a", "instructions": "x", "check": check})

    assert isinstance(parsed, list)
    assert message in parsed[0].message
    assert parsed[0].remedy == f"write {remedy} as a list item"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_whatever_is_quoted_is_passed_on_as_it_is(words: list[str]) -> None:
    text = shlex.join(["program", *words])

    assert words_of(text) == ["program", *words]
    assert commands_in(text) == (text,)


@pytest.mark.parametrize(
    "text",
    [
        "make\u00a0test",
        "\u201cmake test\u201d",
        "make \u2013k",
        "test \u2014x",
        "!grep x",
        "grep \u2018a\u2019 f",
        "!!",
    ],
)
def test_what_a_word_processor_or_a_history_makes_of_a_command_is_refused(text: str) -> None:
    with pytest.raises(BadCommand) as refused:
        words_of(text)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "text", ["grep '\u2018a\u2019' f", "grep 'a\u2013b' f", "echo a\u2013b", "test ! -e f", "echo '!'"]
)
def test_what_is_quoted_or_within_a_word_is_meant(text: str) -> None:
    assert words_of(text)
