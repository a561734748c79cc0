"""The state of a simulated shell: folder, variables, functions, git aliases, and the files it has written."""

import json
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from fnmatch import fnmatchcase

from claudomator_py.acts.pattern import UNKNOWN, Call, Place
from claudomator_py.acts.shell import parse
from claudomator_py.acts.shell_tree import Script
from claudomator_py.acts.wrapped import after
from claudomator_py.values import dataclass, regex

_SETTING = frozenset({"export", "declare", "local", "readonly", "typeset"})
_ENV_LINE = regex(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$", re.MULTILINE)
_ALIASES = regex(r"^\[alias\][ \t]*\n((?:(?!\[).*(?:\n|\Z))*)", re.MULTILINE)
_ALIAS = regex(r"^\s*([\w-]+)\s*=\s*(.+)$", re.MULTILINE)
_NEW_BRANCH = ("-b", "-B", "-c", "-C", "--create", "--orphan")


def arguments(given: Sequence[str]) -> dict[str, str]:
    """Return the variables that stand for the arguments of a shell, function or script."""
    joined = " ".join(given)
    return {str(at): word for at, word in enumerate(given, 1)} | {"@": joined, "*": joined}


@dataclass(slots=True)
class State:
    """The state of a shell at one point of its script."""

    place: Place
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Script] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Contents that the script has written to files, by absolute path."""
    git_aliases: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.variables:
            self.variables = dict(self.place.variables)

    def forked(self) -> "State":
        """Return a copy for a subshell. Only files and git aliases are shared with it."""
        return State(self.place, dict(self.variables), dict(self.functions), self.files, self.git_aliases)

    @contextmanager
    def setting(self, variables: Mapping[str, str]) -> Iterator[None]:
        """Set variables for one command, and restore them afterwards."""
        outer = {name: self.variables.get(name) for name in variables}
        self.variables |= variables
        yield
        for name, value in outer.items():
            if value is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = value

    def value(self, name: str) -> str | None:
        """Return the variable's value, or None if it is unknown."""
        if name == "PWD" and self.place.folder is not None:
            return self.place.folder
        if name in self.variables:
            return self.variables[name]
        return {"HOME": self.place.home or "~", "TMPDIR": "/tmp"}.get(name)  # noqa: S108

    def read(self, path: str) -> str | None:
        """Return the file's text after the writes so far, or None if it cannot be read."""
        whole = self.place.absolute(path)
        return self.files[whole] if whole in self.files else self.place.read(whole)

    def env_file(self) -> dict[str, str]:
        """Return the variables set by ``.env`` in the working directory."""
        return {match[1]: match[2].strip("'\"") for match in _ENV_LINE.finditer(self.read(".env") or "")}

    def alias_of_git(self, call: Call) -> tuple[str, str] | None:
        """Return the git alias that the call uses, and its expansion, or None if it uses none."""
        verb = next(iter(call.positionals), "")
        given = (word.removeprefix("alias.").partition("=") for word in call.values("-c") if word.startswith("alias."))
        known = {name: value for name, _, value in given}
        for file in (".git/config", "~/.gitconfig"):
            section = _ALIASES.search(self.read(file) or "")
            known = {match[1]: match[2] for match in _ALIAS.finditer(section[1] if section else "")} | known
        value = (known | self.git_aliases).get(verb)
        return None if value is None else (verb, value.strip().strip('"'))

    def write(self, path: str, text: str, *, more: bool) -> None:
        """Record the new contents of a file. more: append instead of replacing."""
        whole = self.place.absolute(path)
        before = f"{self.files.get(whole) or self.read(path) or ''}\n" if more else ""
        self.files[whole] = before + text

    def is_allowed(self, line: str, allowed: Collection[str]) -> bool:
        """Return whether a person has allowed exactly this command and it still means what they saw: it runs inside
        the work tree with an unchanged PATH."""
        if line not in allowed or self.place.folder is None:
            return False
        in_path = self.variables.get("PATH") == self.place.variables.get("PATH")
        return in_path and self.place.is_inside(self.place.folder, ())

    def change(self, call: Call, protected: Sequence[str]) -> None:
        """Apply the command's effect on the shell. protected: globs for branches that others rely on."""
        if call.program in ("cd", "pushd"):
            folder = next(iter(call.positionals), "~")
            if not folder.startswith(UNKNOWN):
                place = self.place
                trees = place.trees or (() if place.folder is None else (place.folder,))
                self.place = replace(place, folder=place.absolute(folder), trees=trees or ("/nowhere",))
        elif call.program == "git":
            self._check_out(call, protected)
            self._set_remote(call)
            verb, *names = call.positionals or ("",)
            if verb == "config" and len(names) > 1 and names[-2].startswith("alias."):
                self.git_aliases[names[-2].removeprefix("alias.")] = names[-1]
        elif call.program in ("npm", "pnpm") and call.positionals[:2] == ("pkg", "set"):
            self._package_set(call.positionals[2:])
        elif call.program == "set" and "--" in call.words:
            self.variables |= arguments(after(call.words, "--"))
        elif call.program in _SETTING or call.program == "alias":
            for word in call.positionals:
                name, equals, value = word.partition("=")
                if equals and call.program == "alias":
                    self.functions[name] = parse(value)
                elif equals:
                    self.variables[name] = value

    def _package_set(self, settings: Sequence[str]) -> None:
        """Record scripts defined by ``npm pkg set scripts.x=...``."""
        try:
            document = json.loads(self.read("package.json") or "{}")
        except ValueError:
            document = {}
        for setting in settings:
            name, _, value = setting.partition("=")
            if name.startswith("scripts.") and isinstance(document, dict):
                document["scripts"] = {**(document.get("scripts") or {}), name.removeprefix("scripts."): value}
        self.write("package.json", json.dumps(document), more=False)

    def _check_out(self, call: Call, protected: Sequence[str]) -> None:
        """Record the branch that is checked out, if that is certain: a push without a refspec goes there."""
        verb, *names = call.positionals or ("",)
        if verb not in ("checkout", "switch") or (any(call.values("-C")) and verb not in call.words[:1]):
            return
        new = next((name for option in _NEW_BRANCH for name in call.values(option)), "")
        name = new or (names[0] if names else "")
        # `git checkout NAME` may restore a file, which leaves the branch as it is.
        sure = new or verb == "switch" or (len(names) == 1 and any(fnmatchcase(name, pattern) for pattern in protected))
        if sure:
            self._put(".git/HEAD", f"ref: refs/heads/{name}")

    def _set_remote(self, call: Call) -> None:
        """Record where the remotes of a repository are, as a push may go there."""
        verb, *names = call.positionals or ("",)
        if verb == "clone" and names:
            source, folder = names[0], (*names, posixpath.basename(names[0].rstrip("/")).removesuffix(".git"))[1]
            self._add_to_config(folder, "origin", source)
        elif verb == "remote" and names[:1] in (["add"], ["set-url"]) and len(names) > 2:
            self._add_to_config(next(iter(call.values("-C")), "."), names[1], names[2])
        elif verb == "config" and any(name.startswith(("remote.", "url.", "include")) for name in names):
            self._add_to_config(".", "*", UNKNOWN)

    def _add_to_config(self, folder: str, remote: str, url: str) -> None:
        """Record a remote in the configuration of the repository in that folder. remote: ``*`` for each."""
        path = f"{folder}/.git/config"
        before = self.place.read(self.place.absolute(path)) or ""
        names = re.findall(r'\[remote "([^"]+)"\]', before) if remote == "*" else [remote]
        url = url if ":" in url or url.startswith(UNKNOWN) else self.place.absolute(url)
        self._put(path, before + "".join(f'\n[remote "{name}"]\n\turl = {url}\n' for name in names))

    def _put(self, path: str, text: str) -> None:
        """Let the file have this text for all that looks at the place."""
        whole, read = self.place.absolute(path), self.place.read
        self.place = replace(self.place, read=lambda asked: text if asked == whole else read(asked))
