"""YAML text: what it means, where it stands, and what is refused."""

import time
import tracemalloc

import pytest

from claudomator_py.schema.yamltext import MAX_BYTES, BadText, Plain, decode, read_documents


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
        ("a: [1, -2, 0x10, 1_000]", {"a": [1, -2, 16, 1000]}),
        ("a: [1.5, true, no, ~, null]", {"a": [1.5, True, False, None, None]}),
        ('a: ["1", \'no\', "a\\tb"]', {"a": ["1", "no", "a\tb"]}),
        ("a: 2026-12-01T08:00:00+01:00", {"a": "2026-12-01T08:00:00+01:00"}),
        ("a: 2026-13-77", {"a": "2026-13-77"}),
        ("a: !!str 5", {"a": "5"}),
        ("a: ! 5", {"a": "5"}),
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
    documents = read_documents("---\n# nothing\n---\na: &x 1\n---\n---\nb: 2\n...\n")

    assert [(document.value, document.lines[()]) for document in documents] == [({"a": 1}, 4), ({"b": 2}, 7)]
    assert "no anchor before it" in refusal("a: &x 1\n---\nb: *x\n")


REFUSED = [
    ("a: 1\na: 2", "f:2: a: is already defined in line 1; remove one of them"),
    ("a:\n  b: 1\n  c: 2\n  b: 3", "f:4: a.b: is already defined in line 2"),
    ("no: 1", 'f:1: the key `no` is not text to YAML; put it in quotes: "no"'),
    ("1: a", "f:1: the key `1` is not text to YAML"),
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
    ("a: !!int five", "f:1: a: `five` is not a valid int; put it in quotes"),
    ("a: !!bool maybe", "f:1: a: `maybe` is not a valid bool"),
    ("a: .inf", "f:1: a: `.inf` is not a valid float; put it in quotes"),
    ("a: 1.0e+999", "f:1: a: `1.0e+999` is not a valid float"),
    ("a: &x [*x]", "f:1: a[0]: the alias `*x` stands for what contains it; remove it"),
    ("a: *bold text", "f:1: a: the alias `*bold` has no anchor before it; put the text in quotes"),
    ("a: *bold*", "f:1:4: a value that begins with `*` is an alias to YAML; put it in quotes"),
    ("a: &&", "f:1:4: a value that begins with `&` is an anchor to YAML; put it in quotes"),
    ("a: 1\n\tb: 2", "f:2: is indented with a tab, which YAML forbids; use spaces"),
    ("a:\n\tb: 2", "f:2: is indented with a tab, which YAML forbids; use spaces"),
    ("a: fix: it", "f:1:7: has a `:` where none can be; put a text that contains `: ` in quotes"),
    ("a: `x`", "f:1:4: a value may not begin with ```; put it in quotes"),
    ("a: @x", "f:1:4: a value may not begin with `@`"),
    ('a: 1\nb: "x\nc: 2\n', "f:2:4: a quote is opened here and never closed; close it"),
    ("a: [1, 2", "f:2:1: is not YAML: "),
    ("a: {b: 1]", "f:1:9: is not YAML: while parsing a flow mapping, did not find expected ',' or '}'"),
    ("- a\nb: c", "f:2:1: is not YAML: "),
    ("%YAML 7.0\n---\na: 1", "f:1:1: is not YAML: found incompatible YAML document"),
    ("a: é\x07", "f:1:5: contains the character U+0007, which YAML forbids; remove it"),
    ("a: x\nb: \ufeff", "f:2:4: contains the character U+FEFF, which YAML forbids"),
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
        (b"x" * (MAX_BYTES + 1), "f: the file is 1048577 bytes long, and the limit is 1048576"),
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
