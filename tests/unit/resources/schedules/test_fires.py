"""``schedule preview``, and the times that ``validate`` tells: both without a daemon."""

import json
from pathlib import Path

import pytest

from tests.fakes.command import Command

SPRING = ("--timezone", "Europe/Berlin", "--from", "2026-03-29T00:00:00+01:00")


def test_preview_shows_times_as_the_zone_does_and_in_utc(offline: Command) -> None:
    done = offline("schedule", "preview", "30 2 * * *", *SPRING, "--count", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        "LOCAL TIME                 UTC",
        "Sun 2026-03-29 03:00 CEST  2026-03-29T01:00:00.000Z",
        "Mon 2026-03-30 02:30 CEST  2026-03-30T00:30:00.000Z",
    ]


def test_preview_tells_programs_and_begins_with_the_time_itself(offline: Command) -> None:
    done = offline("schedule", "preview", "0 0 * * *", *SPRING, "--count", "2", "-o", "json")
    assert json.loads(done.stdout) == {"fires": ["2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"]}
    many = offline("schedule", "preview", "* * * * *", "--count", "2000", "-o", "json")
    assert len(json.loads(many.stdout)["fires"]) == 2000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["61 * * * *"], "write a number from 0 to 59"),
        (["0 3 * * *", "--timezone", "Berlin"], "did you mean `Europe/Berlin`?"),
        (["0 3 * * *", "--from", "2026-03-29"], "not a time with an offset"),
        (["0 3 * * *", "--from", "tomorrow"], "write such as 2026-03-28T12:00:00+01:00"),
        (["0 3 * * *", "--count", "2001"], "2000"),
        (["0 3 * * *", "--count", "0"], "--count"),
    ],
)
def test_what_preview_cannot_read_is_refused_with_a_remedy(offline: Command, arguments: list[str], text: str) -> None:
    done = offline("schedule", "preview", *arguments)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""


def test_validate_adds_the_next_three_times_of_a_schedule(offline: Command) -> None:
    text = 'instructions: x\nschedule: "0 3 * * *"\ntimezone: Asia/Kolkata\n'
    (offline.home / "nightly.yaml").write_text(text)
    stdout = offline("validate", "nightly.yaml").stdout
    assert stdout.splitlines()[1].startswith("nightly.yaml: nightly: fires ")
    assert stdout.splitlines()[1].count(" 03:00 IST") == 3
    (record,) = json.loads(offline("validate", "nightly.yaml", "-o", "json").stdout)
    assert len(record["fires"]["nightly"]) == 3
    assert record["fires"]["nightly"][0].endswith("T21:30:00.000Z")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("", "while one of its tasks waits for a person, for 1d at most; set `expires` or `overlap` to change that"),
        ("expires: 12h", "times are skipped while one of its tasks waits for a person, for 12h at most"),
        ("overlap: queue", "further tasks are made while one of them waits for a person"),
        ("{overlap: queue, expires: 2h}", "waits for a person, which fails after 2h"),
        ("overlap: replace", "the next task replaces one that has not begun, or waits for a person"),
    ],
)
def test_validate_says_what_becomes_of_a_schedule_whose_task_waits_for_a_person(
    offline: Command, tmp_path: Path, fields: str, text: str
) -> None:
    file = tmp_path / "nightly.yaml"
    more = fields.strip("{}").replace(", ", "\n")
    file.write_text(f'instructions: x\nschedule: "0 3 * * *"\n{more}\n')
    done = offline("validate", str(file))
    assert "note: nightly: " in done.stdout
    assert text in done.stdout
    assert done.returncode == 0
