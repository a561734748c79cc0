"""Who is addressed with ``@name``, point by point of the grammar in the module's docstring."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudomator_py.routing.mentions import Names, Participant, Phrases

NAMED = (
    Participant("a1", "Pipe Doctor", "plumber"),
    Participant("a2", "Pipe", "pipe-fitter"),
    Participant("a3", "Zoë Grün", "zoe"),
    Participant("a4", "Twin", "twin_1"),
    Participant("a5", "Twin", "twin_2"),
    Participant("a6", "Pipe O'Malley", "malley"),
    Participant("a7", "\u0995\u09cb", "ko"),
    Participant("a8", "\uac00", "ga"),
    Participant("a9", "\uac1b", "gah"),
    Participant("b1", "翻译"),
    Participant("b2", "翻译组长"),
    Participant("b3", username="검토자"),
    Participant("db.admin"),
    Participant("roofer"),
)
NAMES = Names(NAMED)


def found(text: str) -> list[tuple[str, ...]]:
    return [(mention.text, *mention.ids) for mention in NAMES.mentions(text)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # 1: what may stand before
        ("@plumber look", ["a1"]),
        ("(@plumber) **@zoe** cc:@roofer", ["a1", "a3", "roofer"]),
        ("@plumber,@zoe", ["a1", "a3"]),
        ("⚠️@plumber \u200b@zoe", ["a1", "a3"]),
        ("@plumber\ufe0f look, \u26a0\ufe00@zoe", ["a1", "a3"]),
        ("x@plumber 7@plumber ü@plumber _@plumber .@plumber -@plumber /@plumber @@plumber", []),
        ("\\@plumber", []),
        ("\uff20plumber", []),
        # 1 and 2: beside scripts in which nothing shows where a word ends
        ("请@plumber看一下", ["a1"]),
        ("@plumber에게 맡겨 줘, @zoe는 쉬어", ["a1", "a3"]),
        ("これは@plumberさんと@zoeに頼む", ["a1", "a3"]),
        ("ﾃｽﾄ@plumberﾃｽﾄ", ["a1"]),
        ("ให้@plumberดูหน่อย ຂໍ@zoeເບິ່ງ សូម@roofer\u1798\u17be\u179b", ["a1", "a3", "roofer"]),
        ("請@Pipe Doctor看", ["a1"]),
        ("@翻译\uff0c@翻译组长 @검토자!", ["b1", "b2", "b3"]),
        ("@翻译看 @翻译bot @翻译_2 @翻译-x @plumberbot看 看x@plumber看", []),
        ("看`@zoe`看 见https://x.example/@zoe 写给mara@plumber.example看", []),
        # 2: the name
        ("@PLUMBER and @Pipe  Doctor.", ["a1", "a1"]),
        ("@\uff30\uff29\uff30\uff25", ["a2"]),
        ("@pipe\ndoctor", ["a2"]),
        ("@\u00df and @pipe ", ["a2"]),
        ("@plumbers @plumber_x @plumber-x @plumberü", []),
        ("@plumber's @plumber: @plumber", ["a1", "a1", "a1"]),
        ("@zoe\u0308 gru\u0308n", ["a3"]),
        ("@ZOË\u00a0GRÜN!", ["a3"]),
        # 2: composed or not, wide or narrow
        ("@\u0995\u09c7\u09be @\u0995\u09cb", ["a7", "a7"]),
        ("@\uac00 @\u1100\u1161 @\uffa1\uffc2", ["a8", "a8", "a8"]),
        ("@\uac1b @\u1100\u1161\u11c2 @\uac00\u11c2", ["a9", "a9", "a9"]),
        # 3: quotation marks, for display names alone
        (
            "@\"Pipe Doctor\" @“Zoë Grün” @„Pipe“ @«Pipe» @'Pipe' @\u2018Pipe\u2019",
            ["a1", "a3", "a2", "a2", "a2", "a2"],
        ),
        ('@"plumber" @"Pipe Doctor @"Pipe D" @" Pipe" @„Pipe”', []),
        ("@'Pipe O'Malley' @'Pipe'", ["a6", "a2"]),
        # 4: code, paths, scopes, handles
        ("@plumber(x) @plumber/x @plumber@x @plumber.x @pipe doctor(x)", []),
        ("@plumber.", ["a1"]),
        ("@plumber. Then", ["a1"]),
        # 5: where nothing is one
        ("`@plumber` ``a ` @plumber`` @zoe", ["a3"]),
        ("` @plumber", ["a1"]),
        ("\\` @plumber `", ["a1"]),
        ("```\n@plumber\n```\n@zoe", ["a3"]),
        ("~~~ x\n@plumber\n```\n", []),
        ("` a\n\n@plumber ` b", ["a1"]),
        ("- ```\n  @plumber\n  ```\n- @zoe", ["a3"]),
        ("1. ~~~ py\n   @plumber\n   @zoe", []),
        ("- - ```\n    @plumber\n@zoe", ["a3"]),
        ("- ```\n  @plumber\n\n  @plumber\n@zoe ```", ["a3"]),
        ("- ``` @plumber ``` @zoe", ["a3"]),
        ("- x\n  - y\n    ```\n    @plumber\n    ```\n    @zoe", ["a3"]),
        ('<a href="`">@plumber` <b>@zoe</b>', ["a1", "a3"]),
        ("-```\n@plumber", ["a1"]),
        ("> @plumber\n@zoe", ["a3"]),
        ("   > @plumber", []),
        ("    > @plumber", ["a1"]),
        ("https://x/@plumber www.x/@plumber <https://x>@zoe", ["a3"]),
        ("https://x/`a`?to=@plumber @zoe", ["a3"]),
        ("mara+@plumber.example %@zoe", ["a3"]),
        ("@db.admin, ask %@db.admin or *@db.admin", ["db.admin", "db.admin"]),
        # nobody's name
        ("@nobody and @", []),
    ],
)
def test_who_is_addressed(text: str, ids: list[str]) -> None:
    assert [mention.ids[0] for mention in NAMES.mentions(text) if len(mention.ids) == 1] == ids


@pytest.mark.parametrize(
    ("text", "addressed"),
    [
        ("请@翻译看一下", "b1"),
        ("请@翻译组长看", "b2"),
        ("@검토자에게 맡겨 줘", "b3"),
        ("请\uff20plumber看一下", "a1"),
        ("\uff20plumber, look", "a1"),
        ("\ufe6bzoe 看", "a3"),
        ("@翻译bot", None),
        ("يا@plumber انظر", "a1"),
        ("תן ל@zoe בבקשה", "a3"),
        ("_@plumber_ look", "a1"),
        ("so: _@zoe_!", "a3"),
        ("_@plumber look", None),
        ("x_@plumber_", None),
        ("привет@plumber", None),
        ("@「Pipe Doctor」看", "a1"),
        ("@pipe\u2011fitter look", "a2"),
        ("写给mara\uff20plumber.example看", None),
        ("看`\uff20plumber`看", None),
    ],
)
def test_a_task_is_written_to_somebody(text: str, addressed: str | None) -> None:
    assert Names(NAMED, of_task=True).addressed(text) == addressed


@pytest.mark.parametrize("text", ["@cook, cook", "请@COOK看", '@"Cook" and @cook'])
def test_in_a_task_an_id_is_meant_whoever_else_calls_itself_so(text: str) -> None:
    everybody = [Participant("cook", "The Chef"), Participant("cook-example.com", "Cook"), Participant("c3", "Cook")]
    assert Names(everybody, of_task=True).addressed(text) == "cook"
    assert Names(everybody).addressed(text) is None


def test_a_name_of_several_addresses_nobody_and_is_told_as_written() -> None:
    assert found('@twin, @"Twin" and @twin_1') == [("@twin", "a4", "a5"), ('@"Twin"', "a4", "a5"), ("@twin_1", "a4")]
    assert NAMES.addressed("@twin") is None
    assert NAMES.addressed("@twin or @zoe or @plumber") == "a3"


@given(st.text(alphabet=st.sampled_from("@`~>\\ \n\r\t\"'.:/wpiPIPEdoctor zoëü\u0308twin_1-()"), max_size=120))
def test_every_mention_is_where_it_says(text: str) -> None:
    end = 0
    for mention in NAMES.mentions(text):
        assert mention.start >= end
        assert text[mention.start : mention.end] == mention.text
        assert mention.ids
        end = mention.end
    assert NAMES.mentions("".join(f"    {line}\n" for line in ["```", *text.splitlines()])) is not None


@given(st.text(max_size=60))
def test_nothing_in_a_fence_is_a_mention(text: str) -> None:
    inside = text.replace("~", "").replace("\r", "")
    assert NAMES.mentions(f"~~~\n@plumber {inside}\n@zoe\n~~~\n") == []


def test_nobody_is_addressed_within_the_name_of_another() -> None:
    names = Names((Participant("x", "Ann @work"), Participant("work")))
    assert [mention.ids for mention in names.mentions("@Ann @work, @work")] == [("x",), ("work",)]


def test_who_is_nobody_is_not_addressed() -> None:
    assert Names(()).mentions("@plumber") == []
    assert not Phrases(()).any_in("plumber")
    assert Names((Participant("x", "  "), Participant("y"))).mentions("@ @x") != []


@pytest.mark.parametrize("text", ["e\u0301lan!", "(ÉLAN)", "an \u00e9lan"])
def test_a_word_is_found_composed_or_not(text: str) -> None:
    assert Phrases(["\u00e9lan"]).any_in(text)
    assert Phrases(["e\u0301lan"]).any_in(text)
    assert not Phrases(["elan"]).any_in(text)


def test_a_phrase_ends_where_another_script_begins() -> None:
    phrases = Phrases(["deploy", "助けて"])
    assert phrases.any_in("请deploy一下")
    assert phrases.any_in("助けて!")
    assert not any(phrases.any_in(text) for text in ("redeploy", "deployé", "助けてください", "`deploy`一下"))
