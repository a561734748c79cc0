"""How long a configuration keeps what has ended."""

import pytest

from claudomator_py.domain.retention import Retention
from claudomator_py.domain.units import DAY_MS
from claudomator_py.schema.configfile import parse_settings
from claudomator_py.schema.settings import Settings


def kept(**keys: object) -> Retention:
    parsed = parse_settings({"retention": keys})
    assert isinstance(parsed, Settings), parsed
    return parsed.retention


def test_what_is_not_said_is_kept_for_a_sensible_time() -> None:
    assert kept() == Retention()
    assert (kept().runs, kept().events, kept().tasks) == (30 * DAY_MS, 90 * DAY_MS, 365 * DAY_MS)
    assert (kept().decisions, kept().snapshots) == (365 * DAY_MS, 30 * DAY_MS)
    assert kept().messages == 365 * DAY_MS


def test_a_time_or_forever() -> None:
    assert kept(runs="7d", events="forever") == Retention.model_construct(
        runs=7 * DAY_MS, events=None, tasks=365 * DAY_MS
    )
    payload = kept(events="forever").model_dump(mode="json")
    assert payload.pop("events") == "forever"
    assert payload == {"runs": "30d", "decisions": "365d", "snapshots": "30d", "tasks": "365d", "messages": "365d"}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"runs": "never"}, "`never` is not a duration; write a number and a unit, such as 30d, or forever"),
        ({"runs": 30}, "`30` is not a duration"),
        ({"runs": None}, "`None` is not a duration"),
        ({"runs": "5m"}, "retention.runs"),
        ({"tasks": "1d"}, "retention.tasks"),
        ({"logs": "1d"}, "is not a known key"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, object], text: str) -> None:
    problems = parse_settings({"retention": keys})
    assert isinstance(problems, list)
    assert text in str(problems[0])
