"""The pages that merge and discard a task's branch: what they preview, do and refuse. The repository is real."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from claudomator_py.domain.changes import RunChanges
from claudomator_py.domain.lifecycle import Completed, Queued, State, Waiting, WaitReason
from claudomator_py.domain.outcome import Outcome, OutcomeStatus, Reason
from claudomator_py.domain.worktree import Tree, WorktreeRequest, branch_name, tree_name
from claudomator_py.hosts.git.merging import LocalBranches
from claudomator_py.hosts.git.worktrees import LocalTrees
from claudomator_py.resources.access import TokenRequest
from claudomator_py.store.tables import TASK, TASK_DEPENDENCY
from tests.fakes.daemon import Answer, Daemon, running
from tests.fakes.prepared import PreparedService
from tests.integration.hosts.repository import Repository
from tests.unit.api.page.conftest import Visitor, hidden, log_in, text_of


@pytest.fixture
def shop(tmp_path: Path) -> Repository:
    (tmp_path / "home").mkdir()
    return Repository(tmp_path / "shop", tmp_path / "home")


@pytest.fixture
def prepared(tmp_path: Path, shop: Repository) -> Iterator[PreparedService]:
    prepared = PreparedService()
    prepared.world.trees = trees = LocalTrees(tmp_path / "trees", shop.environ)
    prepared.world.branches = LocalBranches(trees)
    prepared.world.restarted_daemon()
    yield prepared
    prepared.close()


@pytest.fixture
def daemon(prepared: PreparedService, tmp_path: Path) -> Iterator[Daemon]:
    with running(prepared, tmp_path / "state") as daemon:
        yield daemon


def done(
    prepared: PreparedService,
    shop: Repository,
    name: str,
    file: str,
    state: State | None = None,
    *,
    proved: bool = False,
) -> Tree:
    """The tree of a task that has committed a file on its branch, and ended. proved: by a check."""
    task = prepared.add(name, state or Completed(), working_dir=str(shop.path))
    place = tree_name(shop.path.name, name, task, 1)
    tree = prepared.world.trees.ensure(WorktreeRequest(place, branch_name(name, place), task, str(shop.path)))
    shop.commit(file, f"{name}\n", at=tree.path)
    works_there = update(TASK).where(TASK.c.id == task).values(dir_key=tree.path)
    prepared.database.write(lambda connection: connection.execute(works_there))
    outcome = Outcome(status=OutcomeStatus.SUCCEEDED, changes=RunChanges(place=tree.path), is_checked=proved)
    prepared.end_run(prepared.add_run(task), outcome)
    prepared.world.trees.look(tree)
    return tree


def send(operator: Visitor, path: str, **fields: str) -> Answer:
    """Press the button of the form at that path."""
    return operator.post(path, {"version": hidden(operator.get(path), "version"), **fields})


def test_a_merge_is_previewed_done_and_shown_with_its_undo(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new")
    page = f"/tasks/{tree.task_id}"
    assert f'href="{page}/merge"' in operator.get(page).body.decode()
    form = operator.get(f"{page}/merge")
    assert form.status == 200
    assert "no conflict 1 commit into main: 1 file (+1 -0)." in text_of(form)
    assert f"The files in {shop.path} are updated too." in text_of(form)
    assert not (shop.path / "new").exists(), "a preview changes nothing"
    before = shop.git("rev-parse", "main")
    sent = send(operator, f"{page}/merge", method="merge")
    assert (sent.status, sent.headers["location"]) == (303, f"{page}#changes-title")
    assert (shop.path / "new").read_text() == "fix\n"
    text = text_of(operator.get(page))
    assert "Merged into main" in text
    undo = f"git -C {shop.path} reset --keep {before}"
    assert undo in text
    assert f'href="{page}/merge"' not in operator.get(page).body.decode()
    shop.git(*undo.split()[3:])
    assert not (shop.path / "new").exists()


def test_what_is_merged_already_is_nothing_to_merge(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    page = f"/tasks/{done(prepared, shop, 'fix', 'new').task_id}/merge"
    send(operator, page)
    again = send(operator, page)
    assert again.status == 200
    assert "nothing to merge main already has all of it." in text_of(again)
    assert '<button class="main">' not in again.body.decode()


def test_a_conflict_is_named_before_and_instead_of_a_merge(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "same")
    shop.commit("same", "another\n")
    shop.git("branch", "other", "HEAD~1")
    form = operator.get(f"/tasks/{tree.task_id}/merge")
    assert form.status == 200
    assert "would conflict with main in same" in text_of(form)
    assert '<button class="main">' not in form.body.decode()
    sent = send(operator, f"/tasks/{tree.task_id}/merge", method="squash")
    assert sent.status == 409
    assert "would conflict with main in same" in text_of(sent)
    assert '<option value="squash" selected>' in sent.body.decode()
    elsewhere = operator.get(f"/tasks/{tree.task_id}/merge?into=other")
    assert "1 commit into other" in text_of(elsewhere)
    assert operator.get(f"/tasks/{tree.task_id}/merge?method=glue").status == 200
    assert "merge, squash, rebase" in text_of(operator.get(f"/tasks/{tree.task_id}/merge?method=glue"))


def test_uncommitted_files_are_refused_or_committed_first(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new")
    Path(tree.path, "left").write_text("over\n")
    page = f"/tasks/{tree.task_id}/merge"
    assert "1 file is not committed" in text_of(operator.get(page))
    assert "2 commits into main: 2 files" in text_of(operator.get(f"{page}?commit=yes"))
    assert send(operator, page).status == 409
    assert send(operator, page, commit="yes").status == 303
    assert (shop.path / "left").read_text() == "over\n"


def test_a_target_with_uncommitted_changes_is_left_alone(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "readme")
    (shop.path / "readme").write_text("being written\n")
    sent = send(operator, f"/tasks/{tree.task_id}/merge")
    assert sent.status == 409
    assert f"{shop.path} has changes that are not committed: readme" in text_of(sent)
    assert (shop.path / "readme").read_text() == "being written\n"


def test_a_branch_is_discarded_after_a_look_and_its_page_says_how_it_comes_back(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new")
    page = f"/tasks/{tree.task_id}"
    form = operator.get(f"{page}/discard")
    assert f"This removes the branch {tree.branch} with 1 commit" in text_of(form)
    assert tree.branch in shop.branches
    assert send(operator, f"{page}/discard").status == 303
    assert tree.branch not in shop.branches
    text = text_of(operator.get(page))
    assert f"Discarded {tree.branch}" in text
    undo = text.partition("on the daemon's machine: ")[2].partition(" refs/")[0]
    shop.git(*undo.split()[3:], f"refs/claudomator/discarded/{tree.name}")
    assert tree.branch in shop.branches
    gone = operator.get(f"{page}/merge")
    assert "has no branch of its own, or no longer has one." in text_of(gone)
    assert send(operator, f"{page}/discard").status == 409


def test_a_task_that_has_not_ended_is_only_previewed(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new", Queued())
    for act in ("merge", "discard"):
        form = operator.get(f"/tasks/{tree.task_id}/{act}")
        assert "when the task has ended" in text_of(form)
        assert '<button class="main"' not in form.body.decode()
        assert send(operator, f"/tasks/{tree.task_id}/{act}").status == 409
    assert f"/tasks/{tree.task_id}/merge" not in operator.get("/repositories").body.decode()


def test_what_was_changed_since_it_was_shown_is_shown_again(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new")
    for act in ("merge", "discard"):
        page = f"/tasks/{tree.task_id}/{act}"
        version = int(hidden(operator.get(page), "version"))
        sent = operator.post(page, {"version": version + 1})
        assert sent.status == 412
        assert "Changed in the meantime" in text_of(sent)
    assert tree.branch in shop.branches
    assert not (shop.path / "new").exists()


def test_branches_are_merged_and_discarded_from_their_list_by_those_who_may(
    operator: Visitor, daemon: Daemon, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new")
    links = [f'href="/tasks/{tree.task_id}/{act}"' for act in ("merge", "discard")]
    assert all(link in operator.get("/repositories").body.decode() for link in links)
    made = prepared.world.tokens.create(TokenRequest(name="reader", role="read"))
    reader = log_in(daemon, made.token)
    for path in ("/repositories", f"/tasks/{tree.task_id}"):
        assert not any(link in reader.get(path).body.decode() for link in links)
    for act in ("merge", "discard"):
        assert reader.get(f"/tasks/{tree.task_id}/{act}").status == 403
        assert reader.post(f"/tasks/{tree.task_id}/{act}").status == 403
    assert tree.branch in shop.branches


def test_a_form_of_another_site_merges_nothing(operator: Visitor, prepared: PreparedService, shop: Repository) -> None:
    tree = done(prepared, shop, "fix", "new")
    sent = operator.post(f"/tasks/{tree.task_id}/merge", Sec_Fetch_Site="cross-site", Origin="http://elsewhere.example")
    assert sent.status == 403
    assert not (shop.path / "new").exists()


READY = "/repositories/merge"


def chosen(answer: Answer) -> list[str]:
    """The values of the boxes of a form."""
    return re.findall(r'name="task" value="([^"]+)"', answer.body.decode())


def test_all_that_are_ready_are_merged_at_once_each_by_itself(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    for name, file in (("one", "first"), ("two", "second"), ("rival", "first")):
        done(prepared, shop, name, file, proved=True)
    unproved = done(prepared, shop, "unproved", "third")
    before = shop.git("rev-parse", "main")
    assert f'href="{READY}"' in operator.get("/repositories").body.decode()
    form = operator.get(READY)
    assert "Merge these 3 branches?" in text_of(form)
    assert unproved.task_id not in form.body.decode()
    assert shop.git("rev-parse", "main") == before, "a preview changes nothing"
    boxes = chosen(form)
    assert len(boxes) == 3
    sent = operator.post(READY, {"task": boxes, "method": "squash"})
    text = text_of(sent)
    assert (sent.status, "2 merged, 1 not" in text) == (200, True), text
    assert "would conflict with main in first" in text
    assert text.count("reset --keep") == 1, "the first undoes all of its repository"
    assert f"git -C {shop.path} reset --keep {before}" in text
    again = text_of(operator.post(READY, {"task": boxes}))
    assert "0 merged, 3 not" in again
    assert "is not ready: merged" in again


def test_of_those_that_are_ready_only_what_was_shown_and_may_be_seen_is_merged(
    operator: Visitor, daemon: Daemon, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new", proved=True)
    unproved = done(prepared, shop, "unproved", "third")
    (box,) = chosen(operator.get(READY))
    task_id, _, version = box.partition(":")
    stale = operator.post(READY, {"task": [f"{task_id}:{int(version) + 1}", f"{unproved.task_id}:{version}"]})
    assert "0 merged, 2 not" in text_of(stale)
    assert "is not ready: no check passed." in text_of(stale)
    assert operator.post(READY, {"task": tree.task_id}).status == 422
    assert operator.post(READY).status == 422
    reader = log_in(daemon, prepared.world.tokens.create(TokenRequest(name="reader", role="read")).token)
    assert f'href="{READY}"' not in reader.get("/repositories").body.decode()
    assert reader.get(READY).status == 403
    assert reader.post(READY, {"task": box}).status == 403
    wanted = TokenRequest(name="other", role="operate", organisation="acme")
    other = log_in(daemon, prepared.world.tokens.create(wanted).token)
    answers = (other.get(READY), other.post(READY, {"task": box}))
    assert [answer.status for answer in answers] == [200, 200]
    assert not any("fix" in text_of(answer) or tree.branch in text_of(answer) for answer in answers)
    assert not (shop.path / "new").exists()


def test_who_will_begin_without_a_discarded_branch_is_named_before(
    operator: Visitor, prepared: PreparedService, shop: Repository
) -> None:
    tree = done(prepared, shop, "fix", "new")
    place = {"working_dir": str(shop.path), "depends_on": ["fix"]}
    prepared.add("next", Waiting(WaitReason.DEPENDENCY), isolation="worktree", **place)
    prepared.add("beside", Waiting(WaitReason.DEPENDENCY), **place)
    begun = prepared.add("begun", Waiting(WaitReason.BACKOFF), isolation="worktree", **place)
    prepared.end_run(prepared.add_run(begun), Outcome(status=OutcomeStatus.FAILED, reason=Reason.AGENT_ERROR))
    bound = update(TASK_DEPENDENCY).values(depends_on_id=tree.task_id)
    prepared.database.write(lambda connection: connection.execute(bound))
    text = text_of(operator.get(f"/tasks/{tree.task_id}/discard"))
    assert "Note: next depends on fix and will begin without these changes." in text
    assert text.count("will begin without") == 1
