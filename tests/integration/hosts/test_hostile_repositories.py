"""What a repository, or an agent that wrote in it, says is to be run: nothing of it is, whatever is done in it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from claudomator_py.domain.worktree import TreeFault, TreeStanding
from claudomator_py.hosts.git.worktrees import LocalTrees
from tests.integration.hosts.repository import Repository, order


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "home").mkdir()
    made = Repository(tmp_path / "shop", tmp_path / "home")
    made.commit(".gitattributes", "*.dat filter=own diff=own merge=own\n")
    made.commit("a.dat", "data\n")
    return made


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """The file that a command of the repository would make."""
    return tmp_path / "ran"


def program(tmp_path: Path, witness: Path) -> Path:
    """What the repository would have run. It says no word, and fails."""
    made = tmp_path / "evil"
    made.write_text(f"#!/bin/sh\necho $0 >> {witness}\nexit 1\n")
    made.chmod(0o755)
    return made


CONFIGURATIONS = {
    "content filters": '[filter "own"]\n clean = {evil}\n smudge = {evil}\n process = {evil}\n',
    "a filter that has to succeed": '[filter "own"]\n clean = {evil}\n smudge = {evil}\n required = true\n',
    "a file system monitor": "[core]\n fsmonitor = {evil}\n",
    "hooks elsewhere": "[core]\n hooksPath = {hooks}\n",
    "an included file": "[include]\n path = {included}\n",
    "a file included for this folder": '[includeIf "gitdir:/**"]\n path = {included}\n',
    "a configuration of the work tree": "[extensions]\n worktreeConfig = true\n",
    "an ssh command": '[core]\n sshCommand = {evil}\n[remote "o"]\n url = ssh://h/r\n promisor = true\n'
    "[extensions]\n partialClone = o\n",
    "a program at the other end": '[remote "o"]\n url = {repository}\n uploadpack = {evil}\n promisor = true\n'
    "[extensions]\n partialClone = o\n",
    "an address that is a command": '[protocol]\n allow = always\n[remote "o"]\n url = ext::{evil}\n promisor = true\n'
    "[extensions]\n partialClone = o\n",
    "a proxy": '[core]\n gitProxy = {evil}\n[remote "o"]\n url = git://h/r\n promisor = true\n'
    "[extensions]\n partialClone = o\n",
    "aliases": "[alias]\n status = !{evil}\n worktree = !{evil}\n rev-parse = !{evil}\n",
    "pagers": "[core]\n pager = {evil}\n[pager]\n status = {evil}\n worktree = {evil}\n rev-parse = {evil}\n",
    "drivers": '[diff]\n external = {evil}\n[diff "own"]\n textconv = {evil}\n command = {evil}\n'
    '[merge "own"]\n driver = {evil}\n',
    "signatures": "[gpg]\n program = {evil}\n[log]\n showSignature = true\n[commit]\n gpgSign = true\n",
    "who asks": "[core]\n askPass = {evil}\n editor = {evil}\n[credential]\n helper = {evil}\n",
    "other repositories": "[core]\n alternateRefsCommand = {evil}\n",
    "upkeep": "[gc]\n auto = 1\n[maintenance]\n auto = true\n",
    "traces": "[trace2]\n eventTarget = {witness}\n normalTarget = {witness}\n",
}


def poisoned(git_dir: Path, what: str, tmp_path: Path, witness: Path, repository: Path) -> None:
    """Have that git directory's configuration name programs."""
    evil = program(tmp_path, witness)
    included, hooks = tmp_path / "included", tmp_path / "hooks"
    included.write_text(CONFIGURATIONS["content filters"].format(evil=evil) + f"[core]\n fsmonitor = {evil}\n")
    for folder in (hooks, git_dir / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
            (folder / name).write_text(evil.read_text())
            (folder / name).chmod(0o755)
    values = {"evil": evil, "included": included, "hooks": hooks, "witness": witness, "repository": repository}
    with (git_dir / "config").open("a") as file:
        file.write(CONFIGURATIONS[what].format(**values))
    for folder in (git_dir, *git_dir.glob("worktrees/*")):
        (folder / "config.worktree").write_text(included.read_text())


@pytest.mark.parametrize("what", CONFIGURATIONS)
def test_nothing_that_a_repository_configures_is_run(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path, what: str
) -> None:
    poisoned(repository.path / ".git", what, tmp_path, witness, repository.path)
    (repository.path / "a.dat").write_text("changed\n")
    tree = trees.ensure(order(repository.path))
    assert tree.left_out
    assert (Path(tree.path) / "a.dat").read_text() == "data\n"
    poisoned(repository.path / ".git", what, tmp_path, witness, repository.path)
    (Path(tree.path) / "a.dat").write_text("changed\n")
    assert trees.look(tree).standing is TreeStanding.DIRTY
    (Path(tree.path) / "a.dat").write_text("data\n")
    assert trees.look(tree).standing is TreeStanding.UNCHANGED
    assert trees.ensure(order(repository.path)).path == tree.path
    trees.remove(tree)
    assert not Path(tree.path).exists()
    assert not witness.exists(), witness.read_text()


def test_a_filter_that_is_not_run_is_noted(trees: LocalTrees, repository: Repository) -> None:
    repository.git("config", "filter.own.smudge", "cat")
    assert trees.ensure(order(repository.path)).filters == ("own",)


def test_what_a_partial_clone_lacks_is_not_fetched(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path
) -> None:
    poisoned(repository.path / ".git", "a program at the other end", tmp_path, witness, repository.path)
    missing = repository.git("hash-object", "a.dat")
    (repository.path / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    with pytest.raises(TreeFault, match="nothing is fetched for it here: make a full one"):
        trees.ensure(order(repository.path))
    assert not witness.exists(), witness.read_text()
    assert trees.all() == []


def own_directory(tree: Path, elsewhere: Path) -> None:
    (tree / ".git").unlink()
    (elsewhere / "repository").rename(tree / ".git")


def pointer(tree: Path, elsewhere: Path) -> None:
    (tree / ".git").write_text(f"gitdir: {elsewhere}/repository\n")


def link_to_a_directory(tree: Path, elsewhere: Path) -> None:
    (tree / ".git").unlink()
    (tree / ".git").symlink_to(elsewhere / "repository")


def link_to_a_pointer(tree: Path, elsewhere: Path) -> None:
    (elsewhere / "pointer").write_bytes((tree / ".git").read_bytes())
    (tree / ".git").unlink()
    (tree / ".git").symlink_to(elsewhere / "pointer")


def pipe(tree: Path, elsewhere: Path) -> None:
    (tree / ".git").unlink()
    os.mkfifo(tree / ".git")


def nothing(tree: Path, elsewhere: Path) -> None:
    (tree / ".git").unlink()


def another_folder(tree: Path, elsewhere: Path) -> None:
    tree.rename(elsewhere / "tree")
    pointer(elsewhere / "tree", elsewhere)
    tree.symlink_to(elsewhere / "tree")


@pytest.mark.parametrize(
    ("exchange", "words"),
    [
        (own_directory, "its .git is a folder, not the file that git made"),
        (pointer, "its .git file was changed, and leads elsewhere"),
        (link_to_a_directory, "its .git is a link, not the file that git made"),
        (link_to_a_pointer, "its .git is a link, not the file that git made"),
        (pipe, "its .git is a device, not the file that git made"),
        (nothing, "its .git file is gone"),
        (another_folder, "its folder cannot be opened"),
    ],
)
def test_a_tree_that_leads_elsewhere_is_a_finding_and_git_is_not_run_there(
    trees: LocalTrees,
    repository: Repository,
    tmp_path: Path,
    witness: Path,
    exchange: Callable[[Path, Path], None],
    words: str,
) -> None:
    tree = trees.ensure(order(repository.path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    repository.git("init", "-q", "--bare", str(elsewhere / "repository"))
    poisoned(elsewhere / "repository", "content filters", tmp_path, witness, repository.path)
    poisoned(elsewhere / "repository", "a file system monitor", tmp_path, witness, repository.path)
    repository.git("config", "--file", str(elsewhere / "repository" / "config"), "core.worktree", str(tmp_path))
    exchange(Path(tree.path), elsewhere)
    state = trees.look(tree)
    assert state.standing is TreeStanding.UNKNOWN
    assert state.words.startswith(words)
    assert "move it away" in state.words
    assert trees.seen(tree.name) == state
    with pytest.raises(TreeFault):
        trees.remove(tree)
    with pytest.raises(TreeFault, match="move it away"):
        trees.ensure(order(repository.path))
    assert not witness.exists(), witness.read_text()
    assert [other.name for other in trees.all()] == [tree.name]


def test_what_an_agent_writes_for_its_own_tree_in_the_repository_leads_nowhere(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path
) -> None:
    tree = trees.ensure(order(repository.path))
    elsewhere = tmp_path / "elsewhere"
    repository.git("clone", "-q", "--bare", str(repository.path), str(elsewhere))
    poisoned(elsewhere, "content filters", tmp_path, witness, repository.path)
    (Path(tree.git_dir) / "commondir").write_text(f"{elsewhere}\n")
    (Path(tree.path) / "a.dat").write_text("changed\n")
    assert trees.look(tree).standing is TreeStanding.DIRTY
    (Path(tree.path) / "a.dat").write_text("data\n")
    trees.remove(tree)
    assert not witness.exists(), witness.read_text()


def test_no_link_of_a_repository_leads_what_is_written_elsewhere(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    for name in (".git.new", ".gitnew", "pointer", "HEAD", "config"):
        (repository.path / name).symlink_to(victim)
    repository.git("add", "--all")
    repository.git("commit", "-q", "-m", "links")
    log = repository.path / ".git" / "logs" / "refs" / "heads" / "claudomator" / "fix-1"
    log.parent.mkdir(parents=True)
    log.symlink_to(victim)
    tree = trees.ensure(order(repository.path))
    assert trees.look(tree).standing is TreeStanding.UNCHANGED
    trees.remove(tree)
    assert victim.read_text() == "mine\n"
    assert not log.parent.exists()


def test_git_is_not_sent_into_a_submodule_and_its_tree_stays(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path
) -> None:
    part = Repository(tmp_path / "part", tmp_path / "home")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.path), "part")
    repository.commit("with", "part")
    tree = trees.ensure(order(repository.path))
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", at=tree.path)
    poisoned(Path(tree.git_dir) / "modules" / "part", "a file system monitor", tmp_path, witness, part.path)
    (Path(tree.path) / "part" / "readme").write_text("work")
    state = trees.look(tree)
    assert state.standing is TreeStanding.UNKNOWN
    assert "submodule part: push what was done there, then: " in state.words
    with pytest.raises(TreeFault):
        trees.remove(tree)
    assert (Path(tree.path) / "part" / "readme").read_text() == "work"
    assert not witness.exists(), witness.read_text()


def test_a_repository_in_a_tree_is_not_asked(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path
) -> None:
    tree = trees.ensure(order(repository.path))
    inner = Repository(Path(tree.path) / "inner", tmp_path / "home")
    poisoned(inner.path / ".git", "a file system monitor", tmp_path, witness, repository.path)
    assert trees.look(tree).standing is TreeStanding.DIRTY
    assert not witness.exists(), witness.read_text()


def test_a_work_tree_of_the_repository_that_leads_elsewhere_is_refused(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    repository.git("config", "core.worktree", str(tmp_path / "private"))
    with pytest.raises(TreeFault, match=r"core\.worktree leads elsewhere"):
        trees.ensure(order(repository.path))


def test_the_users_own_filters_are_run_whatever_the_repository_says_of_them(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path
) -> None:
    """As those of ``git lfs install``."""
    turned = "tr a-z n-za-m"
    own = f'[filter "own"]\n clean = {turned}\n smudge = {turned}\n required = true\n'
    (tmp_path / "home" / ".gitconfig").write_text(own)
    repository.commit(".gitattributes", "*.turned filter=own\n")
    repository.commit("b.turned", "data\n")
    assert repository.git("cat-file", "-p", "HEAD:b.turned") == "qngn"
    poisoned(repository.path / ".git", "content filters", tmp_path, witness, repository.path)
    tree = trees.ensure(order(repository.path))
    assert (Path(tree.path) / "b.turned").read_text() == "data\n"
    os.utime(Path(tree.path) / "b.turned", (1, 1))
    assert trees.look(tree).standing is TreeStanding.UNCHANGED
    assert not witness.exists(), witness.read_text()
    assert tree.filters == ()


def test_what_git_starts_is_shown_the_same_configuration(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    """As ``git lfs``, which downloads from the repository's remotes, by what else is configured there."""
    asked = tmp_path / "asked"
    own = f"git config --local --list >> {asked}; git rev-parse --git-common-dir >> {asked}; cat"
    (tmp_path / "home" / ".gitconfig").write_text(f'[filter "own"]\n smudge = "{own}"\n')
    repository.git("remote", "add", "origin", "https://example.org/shop.git")
    repository.git("remote", "add", "host", "me@example.org:shop.git")
    for number, address in enumerate(("ext::sh -c x", "file:///srv/shop", "/srv/shop", "ssh://-oProxyCommand=x/y")):
        repository.git("config", f"remote.evil{number}.url", address)
    repository.git("config", "remote.origin.uploadpack", "evil")
    repository.git("config", "lfs.customtransfer.x.path", "evil")
    repository.git("config", "credential.helper", "evil")
    tree = trees.ensure(order(repository.path))
    assert (Path(tree.path) / "a.dat").read_text() == "data\n"
    texts = asked.read_text().splitlines()
    assert "remote.origin.url=https://example.org/shop.git" in texts
    assert "remote.host.url=me@example.org:shop.git" in texts
    assert not [line for line in texts if "evil" in line]
    assert str(trees.path(".shop-fix-1.git")) in texts


def test_how_the_repository_has_files_compared_still_holds(trees: LocalTrees, repository: Repository) -> None:
    repository.git("config", "core.autocrlf", "true")
    repository.git("config", 'branch.a "b" \\ c.merge', 'refs/heads/d" \\ e')
    tree = trees.ensure(order(repository.path))
    assert (Path(tree.path) / "readme").read_bytes() == b"hello\r\n"
    os.utime(Path(tree.path) / "readme", (1, 1))
    assert trees.look(tree).standing is TreeStanding.UNCHANGED


def test_repositories_that_borrow_objects_or_hash_otherwise_are_fine(
    trees: LocalTrees, repository: Repository, tmp_path: Path
) -> None:
    repository.git("clone", "-q", "--shared", str(repository.path), str(tmp_path / "borrower"))
    alternates = tmp_path / "borrower" / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(os.path.relpath(alternates.read_text().strip(), alternates.parent.parent) + "\n")
    repository.git("init", "-q", "--object-format=sha256", "-b", "main", str(tmp_path / "long"))
    for folder in (tmp_path / "borrower", tmp_path / "long"):
        repository.git("commit", "-q", "--allow-empty", "-m", "one", at=folder)
        tree = trees.ensure(order(folder, folder.name))
        assert trees.look(tree).standing is TreeStanding.UNCHANGED
        trees.remove(tree)


def test_a_repository_in_a_format_that_is_not_known_is_refused(trees: LocalTrees, repository: Repository) -> None:
    config = repository.path / ".git" / "config"
    config.write_text(config.read_text() + "[extensions]\n fromTheFuture = true\n")
    with pytest.raises(TreeFault, match=r"extensions\.fromthefuture, which is not supported"):
        trees.ensure(order(repository.path))


def as_of_an_earlier_version(trees: LocalTrees, name: str) -> None:
    record = trees.path(f"{name}.json")
    data = json.loads(record.read_bytes())
    record.write_text(json.dumps({key: data[key] for key in data if not key.endswith("_dir") and key != "filters"}))


def test_a_tree_of_an_earlier_version_is_known_by_its_repository(
    trees: LocalTrees, repository: Repository, tmp_path: Path, witness: Path
) -> None:
    tree = trees.ensure(order(repository.path))
    as_of_an_earlier_version(trees, tree.name)
    poisoned(repository.path / ".git", "content filters", tmp_path, witness, repository.path)
    (result,) = trees.all()
    assert trees.look(result).standing is TreeStanding.UNCHANGED
    (Path(tree.path) / ".git").write_text(f"gitdir: {tmp_path}\n")
    assert trees.look(result).standing is TreeStanding.UNKNOWN
    (Path(tree.path) / ".git").write_text(f"gitdir: {tree.git_dir}\n")
    assert trees.ensure(order(repository.path)).git_dir == tree.git_dir
    trees.remove(result)
    assert repository.trees == 1
    assert not witness.exists(), witness.read_text()
