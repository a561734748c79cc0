"""What git says when it cannot make a work tree, and what to do about it."""

from claudomator_py.core.worktree import TreeFault
from claudomator_py.runs.git import GitRefused

_WITHOUT = "or write `isolation: none`"
_BARE = f"it is a bare repository: clone it, and choose the clone, {_WITHOUT}"
# The first that is found in git's words.
_REMEDIES = (
    ("not a git repository", f"choose a folder in a git repository, {_WITHOUT}"),
    ("cannot change to", "choose a folder that is there"),
    ("must be run in a work tree", _BARE),
    ("cannot use bare repository", _BARE),
    ("dubious ownership", "have its owner run the daemon, or allow it with `git config --global --add safe.directory`"),
    ("Needed a single revision", f"it has no commit to begin at: make one, {_WITHOUT}"),
    ("No space left", "make room on the disk, then restart the task"),
    (".lock': File exists", "wait for the other git there; if there is none, remove that lock file"),
    ("' exists; cannot create", "rename the branch that is in the way"),
    ("unable to read", "the clone is partial or damaged, and nothing is fetched for it here: make a full one"),
    ("core.worktree leads elsewhere", "remove core.worktree from its configuration, or choose the folder itself"),
    ("took longer than", f"see what keeps git so long there, then restart the task, {_WITHOUT}"),
    ("could not be started", "install git, and see that it is on the daemon's PATH"),
)
_ELSE = f"correct it and restart the task, {_WITHOUT}"


def fault_of(refused: GitRefused, folder: str) -> TreeFault:
    """The fault with git's words, the folder and the remedy."""
    words = refused.words.strip()
    remedy = next((remedy for part, remedy in _REMEDIES if part in words), _ELSE)
    return TreeFault(f"no work tree of {folder}: {words}; {remedy}")
