"""``eval``: the figures, the decisions in a file, and lines that cannot be read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claudomator_py.__main__ import application
from claudomator_py.client import DiscoveryFailed
from tests.fakes.onnx_graph import model_folder

CARD = {"id": "cook", "description": "Cooks.", "skills": [{"id": "soup", "name": "Soup", "examples": ["boil a soup"]}]}
TASKS = [
    {"id": "1", "text": "boil a soup", "agent": "cook", "oos": False},
    {"id": "2", "text": "boil the soup"},
]


def run(folder: Path, *arguments: str, cards: str = json.dumps(CARD), tasks: str | None = None) -> tuple[int, str, str]:
    (folder / "cards.jsonl").write_text(cards)
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)) if tasks is None else tasks)
    given = ["eval", "--specialists", str(folder / "cards.jsonl"), "--data", str(folder / "tasks.jsonl"), *arguments]
    result = CliRunner().invoke(application(), given, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_it_prints_the_figures_and_writes_each_decision(tmp_path: Path) -> None:
    code, printed, _ = run(tmp_path, "-o", "json", "--decisions", str(tmp_path / "out.jsonl"))

    assert code == 0
    figures = json.loads(printed)
    assert (figures["cases"], figures["top1"], figures["oos_recall"]) == (2, 1.0, None)
    assert figures["latency_ms"].keys() == {"encode_p50", "score_p50", "p99"}
    decided = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [entry["id"] for entry in decided] == ["1", "2"]
    assert {entry["decision"]["specialist"] for entry in decided} == {"cook"}
    assert decided[0]["decision"]["specialist_candidates"][0]["parts"]["semantic"] > 0


def test_people_get_a_list(tmp_path: Path) -> None:
    code, printed, _ = run(tmp_path)
    assert code == 0
    assert "top1                 1.0" in printed


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        ('{"id": "1", "text": "t"}\nnonsense', "tasks.jsonl:2: "),
        ("[]", "tasks.jsonl:1: it is not a JSON object"),
        ('{"id": "1", "text": "t"}\n\n{"id": "1", "text": "u"}', "tasks.jsonl:3: the id `1` is already used in line 1"),
        ('{"id": "1"}', "tasks.jsonl:1: it needs an `id` and a `text` or `instructions`"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, tasks: str, text: str) -> None:
    code, _, problem = run(tmp_path, tasks=tasks)
    assert code == 2
    assert text in problem


LABELLED = {"id": "1", "instructions": "boil a soup", "expected": {"route": "specialist", "specialist": "cook"}}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"route": "specalist"}, "`route` is specalist, which is not allowed: did you mean `specialist`?"),
        ({"specialist": "cok"}, "`expected.specialist` names `cok`, which has no card: did you mean `cook`?"),
        ({"acceptable": ["cook", "smith"]}, "`expected.acceptable` names `smith`"),
        ({"risk": "hgih"}, "`risk` is hgih, which is not allowed: did you mean `high`?"),
        ({"tier": "powerfull"}, "`tier` is powerfull, which is not allowed: did you mean `powerful`?"),
        ({"acceptable_tiers": ["fats"]}, "`acceptable_tiers` is fats, which is not allowed: did you mean `fast`?"),
        ({"mentions": ["chef"]}, "`expected.mentions` names `chef`"),
        ({"ends_with": "human_reviews"}, "`expected.ends_with` names `human_reviews`"),
        ({"acceptible": ["cook"]}, "the key `acceptible` is unknown: did you mean `acceptable`?"),
        ({"max_authority": "raed"}, "`max_authority` is none of"),
    ],
)
def test_a_misspelt_label_is_an_error_with_its_line_and_the_nearest(
    tmp_path: Path, changes: dict[str, object], text: str
) -> None:
    wrong = {**LABELLED, "id": "2", "expected": {**LABELLED["expected"], **changes}}  # type: ignore[dict-item]
    code, _, problem = run(tmp_path, tasks=f"{json.dumps(LABELLED)}\n{json.dumps(wrong)}")
    assert code == 2
    assert f"tasks.jsonl:2: {text}" in problem


@pytest.mark.parametrize(
    "line", [{"agnet": "cook"}, {"agent": "cok"}, {"expeced": {"route": "clarify"}}, {"expected": "cook"}]
)
def test_a_label_that_would_be_none_is_an_error(tmp_path: Path, line: dict[str, object]) -> None:
    code, _, problem = run(tmp_path, tasks=json.dumps({"id": "1", "text": "boil a soup", **line}))
    assert (code, "tasks.jsonl:1: " in problem) == (2, True)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"source": "fiel"}, "`source` is fiel, which is not a source: did you mean `file`?"),
        ({"permissions": {"mod": "plan"}}, "permissions.mod: is not a known key; did you mean `mode`?"),
        ({"budget": {"usd": "1"}}, "budget.usd: is the text `1`, but must be a number"),
        ({"risk": "low"}, "`risk` is a label; put it into `expected`"),
        ({"route": "default", "tier": "fast"}, "`route` is a label; put it into `expected`"),
    ],
)
def test_what_would_be_overlooked_is_an_error_with_its_line(
    tmp_path: Path, asked: dict[str, object], text: str
) -> None:
    code, _, problems = run(tmp_path, tasks=json.dumps({"id": "1", "instructions": "boil a soup", **asked}))
    assert code == 2
    assert f"tasks.jsonl:1: {text}" in problems


def test_rules_see_what_a_task_asks_for(tmp_path: Path) -> None:
    (tmp_path / "claudomator.yaml").write_text(
        "policy:\n  - {name: free, when: 'task.mode == \"bypassPermissions\"', deny: refused}\n"
    )
    task = {"id": "1", "instructions": "boil a soup", "permissions": {"mode": "bypassPermissions"}}
    _, printed, _ = run(
        tmp_path,
        *("--policy", str(tmp_path / "claudomator.yaml"), "-o", "json", "--decisions", str(tmp_path / "out.jsonl")),
        tasks=json.dumps(task),
    )
    assert json.loads((tmp_path / "out.jsonl").read_text())["decision"]["route"] == "reject", printed


@pytest.mark.parametrize("tasks", ["", "\n", " \n\n"])
def test_an_empty_file_passes_no_build(tmp_path: Path, tasks: str) -> None:
    assert run(tmp_path, tasks=tasks)[0] == 2
    (tmp_path / "gates.yaml").write_text("top1: {at_least: 0.5}\n")
    code, _, problems = run(tmp_path, "--gates", str(tmp_path / "gates.yaml"), tasks=tasks)
    assert (code, "tasks.jsonl is empty" in problems) == (2, True)
    assert run(tmp_path, cards="")[0] == 2


@pytest.mark.parametrize("gates", ["", "# top1: {at_least: 1}\n", "top1: {at_least: yes}\n", "top1: {}\n"])
def test_gates_that_demand_nothing_are_refused(tmp_path: Path, gates: str) -> None:
    (tmp_path / "gates.yaml").write_text(gates)
    code, _, problems = run(tmp_path, "--gates", str(tmp_path / "gates.yaml"))
    assert (code, "has no bounds" in problems) == (2, True)


def test_keys_for_others_and_labels_of_nobody_are_no_fault(tmp_path: Path) -> None:
    lines = [
        {"id": "1", "text": "boil", "agent": "__none__", "oos": True, "note": "x", "lang": "en", "work": "other"},
        {"id": "2", "text": "boil", "agent": None},
        {
            **LABELLED,
            "id": "3",
            "title": "Soup",
            "expected": {"route": "clarify", "specialist": None, "traits": ["vague"]},
        },
    ]
    assert run(tmp_path, tasks="\n".join(map(json.dumps, lines)))[0] == 0


def test_what_is_wrong_is_listed_with_what_was_expected_and_the_scores(tmp_path: Path) -> None:
    smith = {"id": "smith", "description": "Forges iron."}
    lines = [
        LABELLED,
        {**LABELLED, "id": "2", "expected": {"route": "specialist", "specialist": "smith"}},
        {"id": "3", "text": "boil a soup", "agent": "smith", "oos": False},
    ]
    cards, tasks = "\n".join(map(json.dumps, (CARD, smith))), "\n".join(map(json.dumps, lines))
    code, printed, _ = run(tmp_path, "-o", "json", cards=cards, tasks=tasks)
    assert code == 0
    figures = json.loads(printed)
    assert figures["per_class"]["specialist"] == {"cases": 2, "precision": 0.5, "recall": 0.5}
    assert figures["confusion"]["specialist"]["wrong_specialist"] == 1
    assert figures["per_specialist"]["smith"] == {"cases": 2, "precision": None, "recall": 0.0}
    assert [entry["id"] for entry in figures["wrong"]] == ["2", "3"]
    wrong = figures["wrong"][0]
    assert (wrong["expected_route"], wrong["expected"]) == ("specialist", ["smith"])
    assert (wrong["route"], wrong["specialist"]) == ("specialist", "cook")
    assert {score["specialist"] for score in wrong["scores"]} == {"cook", "smith"}

    report = tmp_path / "report.html"
    _, printed, _ = run(tmp_path, "--html", str(report), cards=cards, tasks=tasks)
    (row,) = (line for line in printed.splitlines() if line.startswith("2 "))
    assert row.split()[1:3] == ["smith", "cook"]
    assert "Wrong cases" in report.read_text()


def test_the_rules_of_a_configuration_are_applied_as_the_daemon_does(tmp_path: Path) -> None:
    smith = {"id": "smith", "description": "Forges iron.", "capabilities": ["iron"]}
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "policy:\n"
        "  - {name: foreign, when: 'actor.organisation == \"acme\"', deny: not for them}\n"
        "  - {name: hot, when: '\"hot\" in task.tags', approve: {by: [admin]}, risk: medium}\n"
        "  - {name: iron, when: 'task.text.contains(\"iron\")', specialist: smith}\n"
        "  - {name: cold, when: '\"cold\" in task.tags', exclude_specialists: [cook], tier: {ceiling: fast}}\n"
        '  - {name: late, when: \'task.name == "late" && task.specialist + task.skill == "cooksoup"\', deny: late}\n'
    )
    ways: dict[str, tuple[dict[str, object], str, str | None]] = {
        "plain": ({}, "specialist", "cook"),
        "foreign": ({"organisation": "acme"}, "reject", None),
        "hot": ({"tags": ["hot"]}, "human_review", "cook"),
        "iron": ({"instructions": "boil a soup of iron"}, "specialist", "smith"),
        "cold": ({"tags": ["cold"]}, "default", None),
        "late": ({"name": "late"}, "reject", None),
    }
    lines = [
        {"id": name, "instructions": "boil a soup", **line, "expected": {"route": route, "specialist": who}}
        for name, (line, route, who) in ways.items()
    ]
    out, cards = tmp_path / "out.jsonl", "\n".join(map(json.dumps, (CARD, smith)))
    given = ("--policy", str(rules), "--decisions", str(out), "-o", "json")
    code, printed, _ = run(tmp_path, *given, cards=cards, tasks="\n".join(map(json.dumps, lines)))
    assert code == 0
    decided = {entry["id"]: entry["decision"] for entry in map(json.loads, out.read_text().splitlines())}
    assert {name: (entry["route"], entry["specialist"]) for name, entry in decided.items()} == {
        name: (route, who) for name, (_, route, who) in ways.items()
    }
    assert (decided["cold"]["tier"], decided["plain"]["tier"], decided["hot"]["risk"]) == ("fast", "balanced", "medium")
    figures = json.loads(printed)
    assert (figures["wrong"], figures["per_class"]["reject"]["recall"]) == ([], 1.0)
    assert figures["policy"] is not None


def test_a_policy_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("policy: [{name: a, when: 'task.risk == \"hgih\"', deny: x}]\n")
    with pytest.raises(DiscoveryFailed, match="did you mean `high`"):
        run(tmp_path, "--policy", str(tmp_path / "bad.yaml"))


def test_an_unknown_encoder_is_refused_with_the_nearest(tmp_path: Path) -> None:
    code, _, problem = run(tmp_path, "--encoder", "hashd")
    assert code == 2
    assert "Did you mean `hashed`?" in problem


def test_an_encoder_for_which_nothing_was_fitted_says_so(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    code, printed, text = run(tmp_path, "--encoder", f"onnx:{folder}", "-o", "json")
    assert code == 0
    assert json.loads(printed)["fitted"] is False
    assert text == (
        "No threshold was fitted for this encoder, and 0.3 is a guess: run `claudomator calibrate` on the set.\n"
    )


@pytest.mark.parametrize(
    ("encoder", "text"), [("onnx", "--encoder onnx:FOLDER"), ("onnx:/nowhere", "/nowhere has none of model.onnx")]
)
def test_a_model_that_is_not_there_is_named(tmp_path: Path, encoder: str, text: str) -> None:
    code, _, problem = run(tmp_path, "--encoder", encoder)
    assert (code, text in problem) == (2, True)


def test_cards_are_in_a_card_file_too(tmp_path: Path) -> None:
    path, tasks = tmp_path / "cards.yaml", tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(TASKS[0]))

    def told(text: str) -> tuple[int, str]:
        path.write_text(text)
        result = CliRunner().invoke(application(), ["eval", "--specialists", str(path), "--data", str(tasks)])
        return result.exit_code, result.output

    card = "id: cook\ndescription: Boils soup.\n"
    assert told(card)[0] == 0
    code, message = told(f"{card}colour: white\n")
    assert (code, "colour" in message) == (2, True)
    code, message = told(f"{card}---\n{card}")
    assert (code, "is the id in line 1, too" in message) == (2, True)


def test_the_threshold_is_told_and_keys_that_mean_nothing(tmp_path: Path) -> None:
    code, printed, text = run(tmp_path, cards=json.dumps(CARD | {"colour": "white", "display_name": "Cook"}))
    assert code == 0
    assert "threshold            0.14\n" in printed
    assert text == f"{tmp_path}/cards.jsonl: the key `colour` is unknown and ignored (in 1 of the cards).\n"


MESSAGE = {
    "id": "t1",
    "channel": {"id": "c1", "name": "shop", "primary": None, "settings": {"primary": "off", "colour": "white"}},
    "participants": [{"id": "a1", "username": "cook", "display_name": "Cook", "role": "agent"}],
    "message": {"id": "m1", "author": "u1", "role": "user", "content": "@cook soup", "attachments": []},
}
RIGHT = {"reason": "direct_mention", "agents": ["a1"], "should_respond_immediately": True}


def run_on_messages(folder: Path, *lines: object, more: tuple[str, ...] = ()) -> tuple[int, str, str]:
    (folder / "messages.jsonl").write_text("\n".join(map(json.dumps, lines)))
    given = ["eval", "--messages", str(folder / "messages.jsonl"), "-o", "json", *more]
    result = CliRunner().invoke(application(), given)
    return result.exit_code, result.stdout, result.stderr


def test_messages_are_judged_and_each_decision_written(tmp_path: Path) -> None:
    wrong = MESSAGE | {"id": "t2", "expected": {"reason": "no_trigger"}}
    decisions = tmp_path / "out.jsonl"
    code, printed, _ = run_on_messages(
        tmp_path, MESSAGE | {"expected": RIGHT}, wrong, MESSAGE | {"id": "t3"}, more=("--decisions", str(decisions))
    )

    assert code == 0
    figures = json.loads(printed)
    assert figures.pop("latency_ms").keys() == {"p50", "p99"}
    assert figures == {
        "messages": 3,
        "labelled": 2,
        "exact": 0.5,
        "exact_by_reason": {"direct_mention": 1.0, "no_trigger": 0.0},
        "missed_mentions": 0,
        "false_positives": 1,
    }
    decided = [json.loads(line) for line in decisions.read_text().splitlines()]
    assert [entry["id"] for entry in decided] == ["t1", "t2", "t3"]
    assert decided[2]["decision"] == RIGHT | {
        "should_respond_after_processing": False,
        "confidence": 1.0,
        "ambiguous": [],
    }


def test_messages_without_labels_have_no_score(tmp_path: Path) -> None:
    code, printed, _ = run_on_messages(tmp_path, MESSAGE)
    figures = json.loads(printed)
    assert (code, figures["labelled"], figures["exact"], figures["missed_mentions"]) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"channel": None}, "messages.jsonl:1: it needs an `id`, a `channel`"),
        ({"participants": None}, "messages.jsonl:1: `participants` is not a list"),
        ({"participants": [{"id": "x"}]}, "messages.jsonl:1: participants[0].role: is missing; add it"),
        ({"message": {"author": "u1"}}, "messages.jsonl:1: message.content: is missing; add it"),
        ({"channel": {"primary": 7}}, "messages.jsonl:1: `channel.primary` is not an id"),
        ({"message": None}, "messages.jsonl:1: message: is empty; give it a value"),
        ({"channel": {"settings": 7}}, "messages.jsonl:1: channel.settings: is the number 7, but must be a mapping"),
        (
            {"channel": {"settings": {"primary": "maybe"}}},
            "messages.jsonl:1: channel.settings.primary: `maybe` is not one of off, always, ",
        ),
    ],
)
def test_a_message_that_cannot_be_read_is_named(tmp_path: Path, change: dict[str, object], text: str) -> None:
    code, _, problem = run_on_messages(tmp_path, MESSAGE | change)
    assert code == 2
    assert text in problem


def test_tasks_and_messages_are_judged_apart(tmp_path: Path) -> None:
    assert run_on_messages(tmp_path, MESSAGE, more=("--data", "x"))[0] == 2
    result = CliRunner().invoke(application(), ["eval", "--data", str(tmp_path)])
    assert (result.exit_code, "--messages" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("gates", "code", "text"),
    [
        ("top1: {at_least: 0.9}", 0, ""),
        ("latency_ms.p99: {at_most: 100000}", 0, ""),
        ("top1: {at_most: 0.5}", 1, "top1 is 1.0, but must be at most 0.5"),
        ("wrong_agent: {at_least: 0.5}", 1, "wrong_agent is 0.0, but must be at least 0.5"),
        ("oos_recall: {at_least: 0.1}", 1, "oos_recall cannot be measured on this set"),
        ("top1: high", 2, "has no bounds for 'top1'"),
        ("top1: {above: 1}", 2, "has no bounds for 'top1'"),
        ("[", 2, "cannot be read as gates"),
    ],
)
def test_figures_have_to_meet_the_gates(tmp_path: Path, gates: str, code: int, text: str) -> None:
    (tmp_path / "gates.yaml").write_text(gates)
    ended, _, message = run(tmp_path, "--gates", str(tmp_path / "gates.yaml"))
    assert ended == code, message
    assert text in message


def test_figures_are_written_as_a_page_even_where_a_gate_is_missed(tmp_path: Path) -> None:
    gates, report = tmp_path / "gates.yaml", tmp_path / "report.html"
    gates.write_text("oos_recall: {at_least: 0.5}")
    code, _, problem = run(tmp_path, "--gates", str(gates), "--html", str(report))
    assert (code, problem) == (1, "oos_recall cannot be measured on this set\n")
    assert "<td>oos_recall</td><td>-</td><td>at least 0.5</td><td>missed</td>" in report.read_text()


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    code, _, problem = run(tmp_path, "--html", str(tmp_path / "no" / "report.html"))
    assert code == 2
    assert "report.html cannot be written" in problem


def test_a_demand_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    code, _, problem = run(tmp_path, tasks='{"id": "1", "text": "t", "required_fields": ["colour"]}')
    assert code == 2
    assert "tasks.jsonl:1: a handoff has no field colour" in problem
