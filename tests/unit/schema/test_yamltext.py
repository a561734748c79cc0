"""YAML text: what it means, where it stands, and what is refused."""

import time
import tracemalloc

import pytest

from claudomator_py.schema.yamlfaults import BadText
from claudomator_py.schema.yamltext import MAX_BYTES, Plain, decode, read_documents


def value_of(text: str) -> Plain:
    (document,) = read_documents(text)
    return document.value


def refusal(text: str) -> str:
    with pytest.raises(BadText) as caught:
        read_documents(text)
    assert caught.value.problem.remedy
    return caught.value.problem.render("f")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: b", {"a": "b"}),
        ("a: [1, -2, +3, 0, -0]", {"a": [1, -2, 3, 0, 0]}),
        ("a: [5., .5, 0.5, -1.25, 1e3, 1E-3, 1.5e+3]", {"a": [5.0, 0.5, 0.5, -1.25, 1000.0, 0.001, 1500.0]}),
        ("a: [1.5, true, no, !!null , null]", {"a": [1.5, True, False, None, None]}),
        ('a: ["1", \'no\', "a\\tb"]', {"a": ["1", "no", "a\tb"]}),
        ("a: 2026-12-01T08:00:00+01:00", {"a": "2026-12-01T08:00:00+01:00"}),
        ("a: 2026-13-77", {"a": "2026-13-77"}),
        ("a: !!str 5", {"a": "5"}),
        ("a: [=, <<]", {"a": ["=", "<<"]}),
        ("a: |\n  one\n  two: three\n", {"a": "one\ntwo: three\n"}),
        ("a: &x [1, 2]\nb: *x\n", {"a": [1, 2], "b": [1, 2]}),
        ("{a: {}, b: []}", {"a": {}, "b": []}),
    ],
)
def test_values(text: str, value: Plain) -> None:
    assert value_of(text) == value


def test_every_key_and_item_has_its_line() -> None:
    (document,) = read_documents("# comment\na: 1\nb:\n  c:\n    - x\n    - y: 2\n      z: 3\n", first_line=10)

    assert document.lines == {
        (): 11,
        ("a",): 11,
        ("b",): 12,
        ("b", "c"): 13,
        ("b", "c", 0): 14,
        ("b", "c", 1): 15,
        ("b", "c", 1, "y"): 15,
        ("b", "c", 1, "z"): 16,
    }


def test_empty_documents_are_left_out_and_anchors_end_with_their_document() -> None:
    documents = read_documents("---\n# nothing\n---\na: &x [1]\n---\n---\nb: 2\n...\n")

    assert [(document.value, document.lines[()]) for document in documents] == [({"a": [1]}, 4), ({"b": 2}, 7)]
    assert "no anchor before it" in refusal("a: &x [1]\n---\nb: *x\n")


def test_a_comment_behind_a_text_without_quotes_is_known() -> None:
    text = "a: fix #42 it\nb: 'x' # y\nc: [d, e] # f\ng: |\n  h #i\nj:\n- 😀 k\t# l\n- # m\nn:\n  o: p\n    q #r\n"
    (document,) = read_documents(text)

    assert document.comments == {("a",): "#42 it", ("j", 0): "# l", ("j", 1): "# m", ("n", "o"): "#r"}


def test_lines_that_were_joined_are_known() -> None:
    joined = "a:\n  b\n  c\nd: >\n  e\n  f\nl: 'm\n  n'\n"
    as_they_were = "g: >\n  h\ni: |\n  j\n  k\no: p\nq: >\n  r\n\n  s\nt: >-  # u\n\n  v\n"
    (document,) = read_documents(joined + as_they_were)

    assert document.folded == {("a",), ("d",), ("l",)}


REFUSED = [
    ("a: 1\na: 2", "f:2: a: is already defined in line 1; remove one of them"),
    ("a:\n  b: 1\n  c: 2\n  b: 3", "f:4: a.b: is already defined in line 2"),
    ("no: 1", 'f:1: the key `no` is not text to YAML; put it in quotes: "no"'),
    ("1.5: a", "f:1: the key `1.5` is not text to YAML"),
    ("0x1: a", "f:1: the key `0x1` is not text to YAML"),
    ('1: a\n"1": b', "f:2: 1: is already defined in line 1; remove one of them"),
    ("~: a", "f:1: the key `~` is not text to YAML"),
    ("a:\n  ? [x]\n  : y", "f:2: a: a key must be a text"),
    ("a: {{ b }}", "f:1: a: a key must be a text"),
    ("a: &x b\n*x : c", "f:2: a key cannot be an alias; write it out"),
    ("<<: {a: 1}", "f:1: `<<` (merge) is not supported; write the keys out"),
    ("a: !!python/object/apply:os.system [id]", "f:1: a: the tag `tag:yaml.org,2002:python/object/apply:os.system`"),
    ("a: !!binary aGk=", "f:1: a: the tag `tag:yaml.org,2002:binary` is not supported; remove the tag"),
    ("a: !secret x", "f:1: a: the tag `!secret` is not supported"),
    ("a: !!set {b}", "f:1: a: the tag `tag:yaml.org,2002:set` is not supported"),
    ("a: !!omap [b: 1]", "f:1: a: the tag `tag:yaml.org,2002:omap` is not supported"),
    ("a: !!int five", "f:1: a: `five` is not a valid int; write another number, or put it in quotes if it is a text"),
    ("a: !!bool maybe", "f:1: a: `maybe` is not a valid bool"),
    ("a: .inf", "f:1: a: `.inf` is not a finite number; write another number, or put it in quotes if it is a text"),
    ("a: 010", 'f:1: a: `010` is the number 8 to YAML; write 8 for the number, or "010" for the text'),
    ("a: -017", "f:1: a: `-017` is the number -15 to YAML"),
    ("a: 0x1F", "f:1: a: `0x1F` is the number 31 to YAML"),
    ("a: 0b11", "f:1: a: `0b11` is the number 3 to YAML"),
    ("a: 1_000", "f:1: a: `1_000` is the number 1000 to YAML"),
    ("a: 1:30", 'f:1: a: `1:30` is the number 90 to YAML; write 90 for the number, or "1:30" for the text'),
    ("a: {b: 1_0:30}", "f:1: a.b: `1_0:30` is the number 630 to YAML"),
    ("a: [1:30.5]", "f:1: a[0]: `1:30.5` is the number 90.5 to YAML"),
    ("a: 1_0.5", "f:1: a: `1_0.5` is the number 10.5 to YAML"),
    ("a: -.Inf", "f:1: a: `-.Inf` is not a finite number"),
    ("a: 1.0e+999", "f:1: a: `1.0e+999` is not a finite number"),
    ("a: &x [*x]", "f:1: a[0]: the alias `*x` refers to what contains it; remove it"),
    ("a: ! 5", 'f:1: a: the tag `!` is not supported; put the text in quotes: "! 5"'),
    ("a: ! grep x y", 'f:1: a: the tag `!` is not supported; put the text in quotes: "! grep x y"'),
    ("a: !now fix it", 'f:1: a: the tag `!now` is not supported; put the text in quotes: "!now fix it"'),
    ("a: ! [b]", "f:1: a: the tag `!` is not supported; remove the tag"),
    ("a: &fix the bug", "f:1: a: `&fix` is an anchor to YAML, which is no part of the text, and nothing uses it; put"),
    ("a: &x b\n---\na: &x c\nb: *x", "f:1: a: `&x` is an anchor to YAML"),
    (
        "a:\n- &fix\n- b",
        "f:2: a[0]: `&fix` is an anchor to YAML, which is no part of the text, and nothing uses it; put",
    ),
    ("a: - b", "f:1:4: a value may not begin with `- `; put it in quotes, or begin a list in the next line"),
    ("a: ? b", "f:1:4: a value may not begin with `? `; put it in quotes"),
    ("a: }b", "f:1:4: a value may not begin with `}`; put it in quotes"),
    ("a: | b", "f:1:6: a text under `|` or `>` begins in the next line; move it there and indent it"),
    ("a: b\nc d\ne: f", "f:3:1: is neither `key: value` nor part of the text above; put a text of several lines under"),
    (
        "a: b\n  c # d\n  e\n",
        "f:3:3: is text behind a comment, as ` #` in the line above begins one; put the whole text",
    ),
    ("a: *bold text", "f:1: a: the alias `*bold` has no anchor before it; put the text in quotes"),
    ("a: *bold*", "f:1:4: a value that begins with `*` is an alias to YAML; put it in quotes"),
    ("a: &&", "f:1:4: a value that begins with `&` is an anchor to YAML; put it in quotes"),
    ("a: 1\n\tb: 2", "f:2: is indented with a tab, which YAML forbids; use spaces"),
    ("a:\n\tb: 2", "f:2: is indented with a tab, which YAML forbids; use spaces"),
    ("a: fix: it", "f:1:7: has a `:` where none can be; put a text that contains `: ` in quotes"),
    ("a: `x`", "f:1:4: a value may not begin with ```; put it in quotes"),
    ("a: @x", "f:1:4: a value may not begin with `@`"),
    ('a: 1\nb: "x\nc: 2\n', "f:2:4: a quote is opened here and never closed; close it"),
    ("a: [fix] b", "f:1:10: has text after what a `[` begins; put the whole text in quotes, or under `key: |`"),
    ("a: {fix} b", "f:1:10: has text after what a `{` begins; put the whole text in quotes"),
    ('a: "b" c', "f:1:8: has text after the closing quote; put the whole text in quotes"),
    ("a:\n- 'b' c", "f:2:7: has text after the closing quote; put the whole text in quotes"),
    ("a: [1, 2", "f:2:1: is not YAML: "),
    ("a: {b: 1]", "f:1:9: is not YAML: while parsing a flow mapping, did not find expected ',' or '}'"),
    ("- a\nb: c", "f:2:1: is not YAML: "),
    ("%YAML 7.0\n---\na: 1", "f:1:1: is not YAML: found incompatible YAML document"),
    ("a: é\x07", "f:1:5: contains the character U+0007, which YAML forbids; remove it"),
    ("a: x\nb: \ufeff", "f:2:4: contains the character U+FEFF, which YAML forbids"),
    (
        "a: |\n  b\u2028c: d\n",
        "f:2:4: contains the character U+2028, which ends a line for some YAML programs only; write an ordinary",
    ),
    ("a: b # c\u2029d: e", "f:1:9: contains the character U+2029, which ends a line"),
    ('a: "b \x85 c"', "f:1:7: contains the character U+0085, which ends a line"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_a_refusal_names_place_problem_and_remedy(text: str, words: str) -> None:
    assert refusal(text).startswith(words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfea\x00", "f: the file is encoded in UTF-16; save it as UTF-8"),
        (b"\xfe\xff\x00a", "f: the file is encoded in UTF-16; save it as UTF-8"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "f: the file is encoded in UTF-32; save it as UTF-8"),
        (b"a: 1\nb: \x00", "f:2: contains a NUL byte, so it is not a text file; save it as text, in UTF-8"),
        (b"a: 1\nb: gr\xfcn", "f:2:6: the byte 0xfc is not UTF-8; save the file as UTF-8"),
        (b"\xef\xbb\xbfa: 1\nb: \xfc", "f:2:4: the byte 0xfc is not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "f: the file is longer than 1048576 bytes"),
    ],
    ids=["utf-16-le", "utf-16-be", "utf-32", "nul", "latin-1", "bom-and-latin-1", "too-large"],
)
def test_bytes_that_are_no_text(data: bytes, words: str) -> None:
    with pytest.raises(BadText) as caught:
        decode(data)
    assert caught.value.problem.render("f").startswith(words)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode("\ufeffä: 1".encode()) == "ä: 1"


def _aliases_of_aliases() -> str:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [
        f"{key}: &{key} [{', '.join([f'*{before}'] * 10)}]" for before, key in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    return "\n".join(rows)


BOMBS = {
    "aliases of aliases": (_aliases_of_aliases(), "with its aliases written out; make it smaller"),
    "one large text, often": (f"a: &a {'z' * 500_000}\nb: [{', '.join(['*a'] * 100)}]", "aliases written out"),
    "open lists": ("[" * MAX_BYTES, "is nested more than 40 deep; flatten it"),
    "open mappings": ("{a: " * (MAX_BYTES // 4), "is nested more than 40 deep; flatten it"),
    "open block lists": ("- " * (MAX_BYTES // 2), "is nested more than 40 deep; flatten it"),
    "many values": ("[" + "1," * (MAX_BYTES // 2 - 1) + "]", "is more than 20000 values"),
    "many documents": ("---\n" * (MAX_BYTES // 4), "has more than 500 documents; use several files"),
    "a long number in base 60": ("a: 1" + ":1" * 500_000, "is a number of more than 100 characters"),
    "a long number": ("a: " + "9" * 500_000, "is a number of more than 100 characters"),
    "a long key": ("? " + "k" * 100_000 + "\n: 1", "a key is longer than 200 characters"),
    "many anchors": ("- &a a\n" * (MAX_BYTES // 8), "is more than 20000 values"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_little(name: str) -> None:
    text, words = BOMBS[name]
    began_s = time.process_time()
    tracemalloc.start()
    try:
        assert words in refusal(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20
    assert time.process_time() - began_s < 20


def test_numbers_are_those_of_json() -> None:
    (document,) = read_documents('{"a": 1e-05, "b": -2E3, "c": "1e5", "d": 1.5e3}')
    assert document.value == {"a": 1e-05, "b": -2000.0, "c": "1e5", "d": 1500.0}
