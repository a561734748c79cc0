"""Copies that synchronisers leave where a file was changed in two places: told by their names, and not read."""

import pytest

from claudomator_py.schema.cardfile import parse_card_file
from claudomator_py.schema.documents import ConflictName, conflict_names, conflict_problem
from claudomator_py.schema.taskfile import parse_task_file


@pytest.mark.parametrize("name", conflict_names(), ids=lambda name: name.example)
def test_every_pattern_knows_its_example_and_no_more(name: ConflictName) -> None:
    assert name.pattern.search(name.example)
    assert conflict_problem(f"{name.other}.yaml") is None
    problem = conflict_problem(f"{name.example}.yaml")
    assert problem is not None
    assert problem.message == f"is named like a second version of `plan.yaml` that {name.program} left"


def test_the_original_has_its_suffix_once() -> None:
    problem = conflict_problem("plan.yaml.orig.yaml")
    assert problem is not None
    assert "second version of `plan.yaml` that" in problem.message


COPIES = [
    *("plan (conflicted copy 2026-11-27 092733)", "plan (Ann's MacBook's conflicted copy 2026-11-27)"),
    *("plan (conflicted copy ann 2026-11-27 092733)", "plan (Anns in Konflikt stehende Kopie 2026-11-27)"),
    *("plan (In Konflikt stehende Kopie von Ann 2026-11-27)", "plan (Konfliktkopie)", "plan (Copie en conflit de Ann)"),
    *("plan (Copia en conflicto de Ann 2026-11-27)", "plan (Copia in conflitto di Ann 2026-11-27)"),
    *(
        "plan (Cópia em conflito de Ann 2026-11-27)",
        "plan (Ann 的冲突副本 2026-11-27)",
        "plan\uff08Ann的衝突複本\uff09",
    ),
    *(
        "plan(Cong-PC的冲突副本1_2026-06-26 02-11-37)",
        "plan (平川 の競合コピー 2023-10-29)",
        "plan (김의 충돌된 사본 2026-09-29)",
    ),
    *(
        "plan (Конфликтующая копия пользователя Ann 2026-11-27)",
        "plan (Anns konfliktkopia)",
        "plan (Co\u0301pia em conflito)",
    ),
    *(
        "plan (Ann conflicterend exemplaar 2026-11-27)",
        "plan (conflict #2_on_2026-11-27)",
        "plan (PC conflict 20261127)",
    ),
    *("plan (conflict_on_2026-11-27_was_deleted)", "plan (case clash from ann)", "plan (Ann's conflicted copy) (1)"),
    *("plan.sync-conflict-20261127-092733", "plan.v2.sync-conflict-20261127-092733-ABCDEFG", "plan_REMOTE_4711"),
    *(
        "plan_BASE_4711",
        "plan_BACKUP_4711",
        "plan.LOCAL.4711",
        "plan.Conflict2",
        "plan.Conflict.Conflict",
        "plan..path1",
        "plan [Conflict]",
    ),
    "plan_nas_Nov-27-092733-2026_Conflict",
    *(
        "plan.rej",
        "plan.v2.bak",
        "PLAN.ORIG",
        "plan.bak2",
        "plan.REMOTE",
        "plan.merge-right.r7",
        "plan.rpmnew",
        "plan~",
    ),
    *("plan (salinan konflik Ann 2026-11-27)", "plan (Αντίγραφο σε διένεξη του Ann)", "plan (נסחה מתנגש 2026-11-27)"),
    *("plan (bản sao xung đột)", "plan (สำเนาที่ขัดแย้งกัน)", "plan (نسخة تعارض 2026-11-27)", "plan (विवादित प्रति)"),
    *("plan [Conflict 2026-11-27]", "plan-conflicted-copy-20261127", "plan_laptop_2026-11-27_conflict"),
    *("plan-DESKTOP-4F7K2QX", "plan-LAPTOP-9ABCDEF1-2", "plan-WIN-4AB8CD7EFGH", "plan.conflicted 2026-11-27 092733"),
    *("plan.orig.orig", "plan.swp", "plan.ucf-dist", "plan.pacnew"),
]


@pytest.mark.parametrize("stem", COPIES)
@pytest.mark.parametrize("suffix", ["yaml", "md"])
def test_a_copy_is_known_by_its_name(stem: str, suffix: str) -> None:
    assert conflict_problem(f"{stem}.{suffix}") is not None


OTHERS = [
    *(
        "plan",
        "plan (1)",
        "plan 2",
        "plan (copy)",
        "plan - Copy",
        "plan-LAPTOP",
        "conflict",
        "merge-conflict-2026-11-27",
    ),
    *(
        "plan (2026-11-27)",
        "remove the conflicted copy",
        "fix (merge conflict)",
        "plan_local_1",
        "LOCAL_1",
        "copy.of.plan",
    ),
    *("resolve conflict (2026-11-27)", "konflikt", "sync-conflict-20261127", "plan [1]", "plan (a) conflict (copy)"),
    *("plan.r12", "plan.mine", "plan.working", "plan.merged", "plan.remote", "restore.backup", "backup~old"),
    *("plan-desktop-settings", "plan-WIN", "plan-DESKTOP-x", "plan-conflicted", "copy-of-conflicted-2026"),
    *("bak", "orig", "db.backup", "plan.old", "plan-orig", "plan.v2"),
]


@pytest.mark.parametrize("stem", OTHERS)
def test_a_name_that_people_choose_is_none(stem: str) -> None:
    assert conflict_problem(f"{stem}.yaml") is None


def test_neither_tasks_nor_cards_are_read_from_one() -> None:
    name = "plan (conflicted copy 2026-11-27).yaml"

    tasks = parse_task_file(b"instructions: x\n", name)
    cards = parse_card_file(b"id: a\ndescription: x\n", name)

    assert tasks.items == ()
    assert cards.items == ()
    assert [problem.remedy for problem in tasks.problems] == [problem.remedy for problem in cards.problems]
    assert tasks.problems[0].remedy is not None
    assert "delete the other" in tasks.problems[0].remedy
