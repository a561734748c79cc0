"""A value is what the standard library would make of it, and costs nothing before there is one."""

import copy
import dataclasses
import pickle
import re
import sys
import threading
from dataclasses import asdict, field, replace
from typing import Any

import pytest

import claudomator_py.app.serving
import claudomator_py.app.web_server  # noqa: F401 - with it, all that a daemon declares
from claudomator_py.values import dataclass, regex


@dataclass(frozen=True, slots=True)
class Point:
    """Has defaults, and a field that does not count."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """Refuses what makes no sense, and says itself what it is called."""

    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(self.share)

    def __repr__(self) -> str:
        return f"{self.share:.0%}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Takes no positions."""

    name: str
    size: int = 1


@dataclass(frozen=True)
class Loose:
    """Has no slots."""

    name: str = "n"


@dataclass(frozen=True)
class Tight(Loose):
    """Has one more."""

    size: int = 2


@dataclass(slots=True)
class Counter:
    """Can be changed."""

    number: int = 0


def test_a_value_is_made_compared_hashed_and_told() -> None:
    assert Point(1) == Point(1, 0, ["not compared"]) != Point(2)
    assert hash(Point(1)) == hash(Point(1, secret="other")) == hash((1, 0))
    assert repr(Point(1, 2)) == "Point(x=1, y=2, tags=[])"
    assert Point(1).tags is not Point(1).tags
    others: list[object] = [(1, 0), None, Loose()]
    assert Point(1) not in others
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_it_counts_as_frozen() -> None:
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclasses.dataclass
        class _Changeable(Loose):  # type: ignore[misc]
            more: int = 3


def test_what_it_defines_itself_stays() -> None:
    assert repr(Checked(0.5)) == "50%"
    with pytest.raises(ValueError, match="2"):
        Checked(2)


def test_the_library_knows_it() -> None:
    assert replace(Point(1), y=3) == Point(1, 3)
    assert asdict(Named(name="a")) == {"name": "a", "size": 1}
    assert Named.__match_args__ == ()
    match Point(4, 5):
        case Point(x, y):
            assert (x, y) == (4, 5)
    with pytest.raises(TypeError):
        Named("a")  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [Point(1, 2, ["a"], "s"), Checked(0.25), Named(name="b"), Loose("c"), Tight("d", 3)])
def test_it_is_copied_and_pickled(value: Any) -> None:
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert again == value
        assert again is not value


def test_a_class_below_has_the_fields_of_both() -> None:
    assert Tight() == Tight("n", 2)
    assert repr(Tight()) == "Tight(name='n', size=2)"

    @dataclasses.dataclass(frozen=True)
    class Standard(Loose):
        more: int = 3

    assert Standard("a", 4) == Standard("a", 4) != Standard("a")


def test_one_that_can_be_changed_is_the_standard_one() -> None:
    counter = Counter()
    counter.number += 1
    assert counter == Counter(1)


def test_its_methods_are_made_with_the_first_value() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        a: int

    before = Fresh.__init__
    assert Fresh(1).a == 1
    assert Fresh.__init__ is not before
    assert Fresh.__init__.__code__.co_varnames == ("self", "a")


def test_threads_that_make_the_first_values_at_once_disturb_nobody() -> None:
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Fresh:
            a: int
            b: str = "b"

        begin, made = threading.Barrier(4), list[object]()

        def make(fresh: Any = Fresh, begin: threading.Barrier = begin, made: list[object] = made) -> None:
            begin.wait()
            made.append(fresh(1))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Fresh(1)] * 4


def test_an_expression_is_compiled_when_it_is_asked_something() -> None:
    words: Any = regex(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert set(vars(words)) == {"_made"}
    assert words.findall("Ab c") == ["Ab", "c"]
    assert (words.pattern, words.groupindex["word"]) == (r"(?P<word>[a-z]+)", 1)
    assert words.search is words.search
    assert words.sub("x", "Ab c") == "x x"
    broken: Any = regex("(")
    with pytest.raises(re.error):
        broken.search("")
    with pytest.raises(AttributeError):
        _ = words.no_such_method
    with pytest.raises(AttributeError):
        _ = words.__no_such__


def test_every_expression_of_the_package_compiles() -> None:
    result = 0
    for module in [entry for name, entry in sys.modules.items() if name.startswith("claudomator_py")]:
        for value in vars(module).values():
            if type(value) is regex and value.pattern:
                result += 1
    assert result > 50
