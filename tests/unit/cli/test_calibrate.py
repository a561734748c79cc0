"""``calibrate``: what it prints, what it stores, and what it does not."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from claudomator_py.__main__ import application
from claudomator_py.daemon import calibrations
from claudomator_py.lab import fitting

CARDS = [
    {"id": "cook", "description": "Cooks soup and stew of onion.", "colour": "white"},
    {"id": "smith", "description": "Forges iron: hammer, nail and horseshoe."},
]
TEXTS = (("boil the soup of onion", "cook"), ("forge an iron nail", "smith"), ("watch the moon", None))
TASKS: list[dict[str, object]] = [
    {
        "id": str(at),
        "text": f"{TEXTS[at % 3][0]}, number {at}",
        "agent": TEXTS[at % 3][1],
        "oos": TEXTS[at % 3][1] is None,
    }
    for at in range(60)
]


def run(folder: Path, *arguments: str, tasks: list[dict[str, object]] = TASKS) -> tuple[int, str, str]:
    (folder / "cards.jsonl").write_text("\n".join(map(json.dumps, CARDS)))
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    given = ["calibrate", "--specialists", str(folder / "cards.jsonl"), "--data", str(folder / "tasks.jsonl")]
    result = CliRunner().invoke(application(), [*given, *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_it_prints_what_fits_and_stores_nothing(tmp_path: Path) -> None:
    code, printed, text = run(tmp_path)
    assert code == 0
    assert "encoder  hashed-4096-v1" in printed
    assert "accuracy with none" in printed
    assert "is unchanged" not in text
    assert "cards.jsonl: the key `colour` is unknown and ignored (in 1 of the cards)." in text


def test_programs_get_the_fit_with_its_figures(tmp_path: Path) -> None:
    code, printed, _ = run(tmp_path, "-o", "json")
    assert code == 0
    result = json.loads(printed)
    assert result["kept"] == []
    assert result["in_sample"]["accuracy_with_none"] == result["expected"]["accuracy_with_none"] == 1.0
    assert result["expected"]["latency_ms"] is None


def test_stored_it_is_the_daemons(tmp_path: Path) -> None:
    code, printed, text = run(tmp_path, "--store", "--state-dir", str(tmp_path), "-o", "json")
    assert code == 0
    assert f"Stored in {tmp_path / calibrations.FILE}." in text
    stored = calibrations.read(tmp_path)["hashed-4096-v1"]
    assert stored.calibration.model_dump() == json.loads(printed)["calibration"]
    assert (stored.cases, stored.expected, sorted(stored.cards)) == (60, 1.0, ["cook", "smith"])


def test_what_is_worse_than_what_holds_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_better(*given: Any) -> fitting.Fit:
        result = fit(*given)
        return result.model_copy(update={"expected": result.expected.model_copy(update={"accuracy_with_none": 0.01})})

    fit = fitting.fit
    monkeypatch.setattr(fitting, "fit", no_better)
    code, _, text = run(tmp_path, "--store", "--state-dir", str(tmp_path))
    assert code == 1
    assert "Nothing was stored" in text
    assert calibrations.read(tmp_path) == {}


def test_a_state_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, _, text = run(tmp_path, "--store", "--state-dir", str(tmp_path / "gone"))
    assert code == 1
    assert f"The result cannot be stored: {tmp_path / 'gone'}: No such file or directory." in text


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        (TASKS[:10], "the set has 10 labelled tasks"),
        ([*TASKS, TASKS[3]], "tasks.jsonl:61: the id `3` is already used in line 4"),
    ],
)
def test_a_set_that_cannot_be_used_is_refused(tmp_path: Path, tasks: list[dict[str, object]], text: str) -> None:
    code, _, problem = run(tmp_path, tasks=tasks)
    assert code == 2
    assert text in problem


def test_an_encoder_that_is_configured_is_asked_as_it_is_and_may_fail(tmp_path: Path) -> None:
    (tmp_path / "claudomator.yaml").write_text(
        "routing: {encoder: {kind: openai, model: ours, base_url: 'http://127.0.0.1:1'}}\n"
    )
    code, _, text = run(tmp_path, "--encoder", "openai", "--config", str(tmp_path / "claudomator.yaml"))
    assert (code, "Error: Nothing can be fitted: openai: " in text) == (2, True)
