"""A repository with a configuration of our own, so that git runs nothing that the repository configures.

git obeys ``.git/config``: it runs filters, hooks and a file system monitor, fetches through any command, and reads
further files. An agent that may only write files can write that one. A list of settings to disable would be as long as
git's manual, and incomplete with the next version. Therefore git never reads that file. It is given a *shadow*, a
folder with our configuration and links to the data in the repository's directory (objects, references, the list of work
trees). ``GIT_DIR`` and ``GIT_COMMON_DIR`` keep git, and all programs that it starts, in the shadow.

This disables the following, whether it is in the configuration of the repository or of a work tree, or in an included
file:

- programs for content: ``filter.*``, ``diff.*`` (external, textconv), ``merge.*``, ``core.editor``, pagers, aliases;
- background programs: ``core.hooksPath`` and ``hooks/``, ``core.fsmonitor``, ``gc``, ``maintenance``, ``trace2``;
- programs for transport: ``core.sshCommand``, ``core.gitProxy``, ``remote.*.uploadpack``, ``ext::`` addresses,
  credential helpers, promisor remotes of partial clones, ``protocol.*`` that would allow them;
- programs for signatures: ``gpg.program``, with ``log.showSignature``;
- other places: ``core.worktree``, ``include.path``, ``extensions.worktreeConfig``, a replaced ``commondir``.

Only settings for comparing files and for pushing a branch are copied (``_COPIED``). The user's own configuration
applies, including its filters: ``git lfs install`` works, ``git lfs install --local`` does not. A submodule that is
checked out has its own configuration, so git does not enter it. While it finds the directories, git itself refuses
repositories of other users (``safe.directory``).
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from claudomator_py.hosts.git import Git, GitRefused, is_true
from claudomator_py.private_files import flush_path, write_new
from claudomator_py.values import dataclass, regex

# Data in a git directory. Not the logs of references: git would append to them through any link.
_LINKED = ("objects", "refs", "packed-refs", "reftable", "info", "shallow", "index", "lfs")
_TREES = "worktrees"
_COPIED = regex(
    r"core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|checkstat|trustctime"
    r"|protecthfs|protectntfs|sparsecheckout|sparsecheckoutcone|bigfilethreshold|logallrefupdates|sharedrepository)"
    r"|extensions\.(objectformat|compatobjectformat|refstorage)"
    r"|index\.sparse"
    r"|user\.(name|email)"
    r"|branch\..+\.(remote|merge)"
    r"|remote\..+\.fetch",
    re.DOTALL,
)
# These do not affect how data are read.
_IGNORED_EXTENSIONS = frozenset({"noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees"})
_WORKTREE_CONFIG = "extensions.worktreeconfig"
_CONFIG_OF_TREE = "config.worktree"
_NOT_INHERITED = ("core.bare", "core.worktree")
"""Settings that git does not give to a new work tree. Source: git-worktree(1), configuration file."""
_ADDRESS = regex(r"remote\..+\.(url|lfsurl)", re.DOTALL)
_HARMLESS_ADDRESS = regex(r"(https?|ssh)://[^-]|[A-Za-z0-9_.][A-Za-z0-9_.@-]*:(?!:|//)")
_ATTRIBUTES = regex(r"100\d+ blob (?P<id>\w+)\t(?P<path>(.*/)?\.gitattributes)", re.DOTALL)
_FILTER = regex(r"filter\.(.+)\.(clean|smudge|process)", re.DOTALL)
_MAX_CONFIG = 2**20
_PARSED_CONFIGS: dict[bytes, str] = {}
"""Cache of parsed configuration files, by their text."""
_MAX_PARSED, _MAX_PARSED_BYTES = 64, 8 * 1024

POINTER = ".git"
"""The file in a work tree that names its git directory."""

Settings = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Repository:
    """Directories of a repository. top: work tree. git_dir: of that work tree. common_dir: of all work trees."""

    top: str
    git_dir: str
    common_dir: str


def discover(git: Git, folder: Path | str) -> Repository:
    """Return the repository that contains a folder. git reads its configuration, but runs nothing. Raises GitRefused,
    for example for a repository of another user."""
    asked = ("--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir")
    lines = git(folder, "rev-parse", *asked).split("\n")
    if len(lines) != len(asked) - 1:
        raise GitRefused("its path has a line break in it")
    top, git_dir, common_dir = (os.path.realpath(path) for path in lines)
    if not Path(folder).resolve().is_relative_to(top):
        raise GitRefused(f"core.worktree leads elsewhere, to {top}")
    return Repository(top, git_dir, common_dir)


def pointing_to(git_dir: str) -> bytes:
    """Return the content of a work tree's ``.git`` file."""
    return f"gitdir: {git_dir}\n".encode(errors="surrogateescape")


def deinit_command(work_tree: str, submodule: str) -> str:
    """Return the command that removes a submodule from a work tree, with all that is only there."""
    return shlex.join(("git", "-C", work_tree, "submodule", "deinit", "--force", "--", submodule))


def copy_index(index: Path, to: Path) -> None:
    """Copy an index, if there is one, with its modification time, by which git recognises files that may have changed
    at the same time as the index. Raises OSError."""
    with suppress(FileNotFoundError):
        shutil.copy2(index, to)


class ShadowRepository:
    """git for one repository, with our configuration. path: folder of the shadow, which is replaced."""

    def __init__(self, git: Git, path: Path, common_dir: str) -> None:
        """Raises GitRefused; OSError."""
        self._git = git
        self._path = path
        self._common = Path(common_dir)
        if not self._common.is_dir():
            raise GitRefused(f"its git directory {common_dir} is not there any more")
        shared = self._settings(self._common / "config")
        self._is_per_tree = (_WORKTREE_CONFIG, "true") in shared
        settings = [*shared, *self._settings_of_tree(self._common)]
        self._filters = tuple(dict.fromkeys(match[1] for key, _ in settings if (match := _FILTER.fullmatch(key))))
        self._make(_configuration(settings))

    def __call__(
        self,
        *arguments: str,
        git_dir: str | None = None,
        work_tree: str | None = None,
        timeout_s: float = 30.0,
        keep: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> str:
        """See ``Git``. git_dir: of a linked work tree; None for the repository itself. Raises GitRefused."""
        own = git_dir is None or git_dir == str(self._common)
        environ = {"GIT_DIR": str(self._path) if own else str(git_dir), "GIT_COMMON_DIR": str(self._path)}
        if git_dir is not None and not own:
            environ |= _variables(self._settings_of_tree(Path(git_dir)))
        if work_tree is not None:
            environ["GIT_WORK_TREE"] = work_tree
        folder = work_tree or self._path
        environ |= variables or {}
        try:
            return self._git(folder, *arguments, variables=environ, timeout_s=timeout_s, keep=keep, stdin=stdin)
        except GitRefused as refused:
            # Whoever reads it finds nothing under the path of the shadow, such as a lock file to be removed.
            words = refused.words.replace(str(self._path), str(self._common))
            raise GitRefused(words, refused.code, refused.printed) from None

    def has(self, ref: str) -> bool:
        """Return whether there is a reference of that full name. Raises GitRefused."""
        return is_true(self, "show-ref", "--verify", "--quiet", "--", ref)

    def tip(self, ref: str) -> str | None:
        """Return the commit of a branch; None if there is no such branch. Raises GitRefused."""
        return self("rev-parse", "--verify", ref) if self.has(ref) else None

    def contains(self, commit: str, other: str) -> bool:
        """Return whether the other commit is this one, or an ancestor of it. Raises GitRefused."""
        return is_true(self, "merge-base", "--is-ancestor", other, commit)

    def writing_to(self, objects: Path) -> dict[str, str]:
        """Return the variables with which git writes new objects to that folder, and none to the repository."""
        return {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self._common}/objects",
        }

    def submodule(self, git_dir: str, work_tree: str) -> str | None:
        """Return the path of a submodule that is checked out in a work tree, or None. Raises GitRefused."""
        staged = self("ls-files", "--stage", "-z", git_dir=git_dir, work_tree=work_tree)
        links = (entry.partition("\t")[2] for entry in staged.split("\0") if entry.startswith("160000 "))
        return next((link for link in links if os.path.lexists(Path(work_tree, link, POINTER))), None)

    def merge_tree(
        self, ours: str, theirs: str, *options: str, timeout_s: float, variables: Mapping[str, str] | None
    ) -> str:
        """Return what ``git merge-tree`` prints, with the attributes in the commit ours, as ``git merge`` in a checkout
        of it has. git takes them from the work tree in which it runs. Raises GitRefused; OSError."""
        if (tree := self._path / "attributes").exists():
            shutil.rmtree(tree)
        tree.mkdir()
        for entry in self("ls-tree", "-r", "-z", ours, timeout_s=timeout_s, variables=variables).split("\0"):
            if found := _ATTRIBUTES.fullmatch(entry):
                file = Path(os.path.normpath(tree / found["path"]))
                if file.is_relative_to(tree):
                    file.parent.mkdir(parents=True, exist_ok=True)
                    text = self("cat-file", "blob", found["id"], variables=variables)
                    file.write_bytes(text.encode(errors="surrogateescape"))
        asked = ("merge-tree", "--write-tree", "--no-messages", *options, ours, theirs)
        return self(*asked, work_tree=str(tree), timeout_s=timeout_s, variables=variables)

    def filters_left_out(self) -> tuple[str, ...]:
        """Return the content filters that only the repository's configuration defines, and that are therefore not run.
        Raises GitRefused."""
        if not self._filters:
            return ()
        listed = self("config", "--name-only", "--null", "--list").split("\0")
        users = {match[1] for key in listed if (match := _FILTER.fullmatch(key))}
        return tuple(name for name in self._filters if name not in users)

    def add(self, path: str, *what: str, source_dir: str, timeout_s: float, keep: Sequence[int] = ()) -> str:
        """Create a work tree at path. Return its git directory, to which its ``.git`` file points. source_dir: git
        directory of the work tree that it is made from, whose sparse checkout and own settings it is given. Raises
        GitRefused; OSError."""
        if not (trees := self._common / _TREES).exists():
            trees.mkdir()
            # Other users may share the repository, whatever this process's umask.
            trees.chmod(stat.S_IMODE(self._common.stat().st_mode))
        source = source_dir if Path(source_dir).is_dir() else str(self._common)
        self("worktree", "add", "--quiet", *what, git_dir=source, timeout_s=timeout_s, keep=keep)
        # git has written a path through the shadow to it.
        pointer = Path(path) / POINTER
        made = self._common / _TREES / Path(pointer.read_text().strip()).name
        # Not next to it, where the repository may have a link of any name.
        new = self._path / "pointer"
        write_new(new, pointing_to(str(made)))
        # git itself would copy them, but for the shadow. Without them, git in the tree, and so the agent, does not see
        # changes outside of a sparse checkout.
        if inherited := [pair for pair in self._settings_of_tree(Path(source)) if pair[0] not in _NOT_INHERITED]:
            text = "".join(_line(*pair) for pair in inherited)
            (made / _CONFIG_OF_TREE).write_text(text, encoding="utf-8", errors="surrogateescape")
        new.rename(pointer)
        flush_path(pointer.parent)
        return str(made)

    def delete(self, ref: str, tip: str) -> None:
        """Delete a reference and its log, if it is at that commit. Raises GitRefused."""
        self("update-ref", "-d", ref, tip)
        with suppress(OSError):
            (log := self._common / "logs" / ref).unlink()
            log.parent.rmdir()

    @property
    def path(self) -> Path:
        """Its folder; files put there are removed with it."""
        return self._path

    def remove(self) -> None:
        """Remove the shadow; the repository is not changed."""
        shutil.rmtree(self._path, ignore_errors=True)

    def _settings_of_tree(self, git_dir: Path) -> Settings:
        """Return the settings that apply to one work tree only, such as those of its sparse checkout."""
        return self._settings(git_dir / _CONFIG_OF_TREE) if self._is_per_tree else ()

    def _settings(self, file: Path) -> Settings:
        """Return the settings in a configuration file, without those in included files."""
        text = _read_regular(file, _MAX_CONFIG)
        listed = _PARSED_CONFIGS.get(text)
        if listed is None:
            listed = self._git("/", "config", "--file", "-", "--no-includes", "--null", "--list", stdin=text)
            if len(text) <= _MAX_PARSED_BYTES:
                if len(_PARSED_CONFIGS) >= _MAX_PARSED:
                    _PARSED_CONFIGS.clear()
                _PARSED_CONFIGS[text] = listed
        pairs = (entry.partition("\n") for entry in listed.split("\0") if entry)
        return [(key, value if equals else "true") for key, equals, value in pairs]

    def _make(self, configuration: str) -> None:
        if self._path.exists():
            shutil.rmtree(self._path)
        self._path.mkdir(mode=0o700)
        there = (name for name in _LINKED if (self._common / name).exists())
        for name in (*there, *(path.name for path in self._common.glob("sharedindex.*")), _TREES):
            (self._path / name).symlink_to(self._common / name)
        (self._path / "HEAD").write_bytes(_read_regular(self._common / "HEAD", _MAX_CONFIG))
        (self._path / "config").write_text(configuration, encoding="utf-8", errors="surrogateescape")


def _configuration(settings: Settings) -> str:
    """Return our configuration with the settings that may be copied. Raises GitRefused for an unknown format."""
    lines = []
    for key, value in settings:
        section, _, name = key.partition(".")
        if section == "extensions" and not (
            _COPIED.fullmatch(key) or name in _IGNORED_EXTENSIONS or key == _WORKTREE_CONFIG
        ):
            raise GitRefused(f"the repository needs {key}, which is not supported")
        if _COPIED.fullmatch(key) or (_ADDRESS.fullmatch(key) and _HARMLESS_ADDRESS.match(value)):
            lines.append(_line(key, value))
    return "".join(lines)


def _variables(settings: Settings) -> dict[str, str]:
    """Return the environment with which git applies the settings that may be copied."""
    copied = [(key, value) for key, value in settings if _COPIED.fullmatch(key)]
    named = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(copied)}
    given = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(copied)}
    return {"GIT_CONFIG_COUNT": str(len(copied)), **named, **given} if copied else {}


def _line(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    head = f'{section} "{_quoted(subsection)}"' if subsection else section
    escaped = _quoted(value).replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")
    return f'[{head}]\n\t{name} = "{escaped}"\n'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _read_regular(file: Path, most: int) -> bytes:
    """Return the content of a regular file, empty if it is missing. Raises GitRefused for other kinds; OSError."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    with os.fdopen(fd, "rb") as opened:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise GitRefused(f"{file} is no plain file of at most {most} bytes")
        return opened.read(most)
