"""Find what a command line does and which reach that takes, through wrappers, scripts and nested shells.

Nothing is executed. Scripts, make recipes and package.json scripts are followed if ``Place.read`` returns their text.
"""

import posixpath
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from claudomator_py.acts import code, recipes
from claudomator_py.acts.catalogue import catalogue, without_version
from claudomator_py.acts.pattern import UNKNOWN, Call, Place
from claudomator_py.acts.state import State
from claudomator_py.acts.task_files import defined
from claudomator_py.acts.walk import SCRIPT, Act, Walk, line_of
from claudomator_py.acts.wrapped import after, executed, image_of, inner_words, longest_key, program_of

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash", "source", "."})
_INTERACTIVE = frozenset(
    {"-i", "-l", "-il", "-li", "-s", "-", "-q", "-u", "-B", "-x", "-e", "--login", "--interactive"}
)
_IMAGES = frozenset({"docker run", "podman run", "nerdctl run"})
_PACKAGES = frozenset({"npx", "bunx", "pnpx", "npm exec", "npm x", "pnpm dlx", "yarn dlx", "bun x"})
_NOTHING: Final[Mapping[str, str]] = {}


def acts(command_line: str, place: Place | None = None, allowed: Collection[str] = ()) -> tuple[Act, ...]:
    """Return what the command line does beyond the working directory: distinct acts in order, as far as known. allowed:
    commands that a person has allowed, in the form of ``Act.command``; their acts are left out."""
    reader = _ActsReader(catalogue(), State(place or Place()), allowed=frozenset(allowed))
    reader.text(command_line)
    return tuple(dict.fromkeys(reader.acts))


class _ActsReader(Walk):
    __slots__ = ()

    def code(self, text: str) -> None:
        """Read program code."""
        for kind, evidence in code.does(text, self.known.code):
            self.note(kind, evidence)
        for command in code.commands(text):
            if isinstance(command, str):
                self.text(command)
            else:
                self.words(list(command), {}, None)

    def runs(self, call: Call, own: Mapping[str, str], stdin: str | None) -> None:
        plain = without_version(call.program)
        words = list(call.words)
        key, rest = longest_key(plain, words, self.known.wrappers, self.known)
        if key is not None:
            self._wrapped(key, rest, own, stdin)
        key, rest = longest_key(plain, words, self.known.shell_options, self.known)
        if key is not None:
            self._shell_option(key, call)
        key, rest = longest_key(plain, words, self.known.shell_words, self.known)
        if key is not None:
            first = next((n for n, word in enumerate(rest) if not word.startswith("-")), len(rest))
            self._joined(rest[first:])
        if any(call.has(option) for option in self.known.only_parsed.get(plain, ())):
            return
        if plain in _SHELLS:
            self._shell(call, stdin)
        if plain == "java" and (archive := next(iter(call.values("-jar")), "")):
            self._run([posixpath.basename(archive).removesuffix(".jar"), *after(call.words, archive)], own, stdin)
        if plain in self.known.code_options:
            self._interpreter(plain, call, stdin)
        if plain in ("find", "fd", "fdfind"):
            for inner in executed(words):
                self._run(inner)
        if plain == "git":
            self._git(call)
        runs = list(recipes.run_by(plain, call, self.state.read))
        for text, label in runs:
            self.within(label, partial(self.text, text))
        for text, label, is_code in defined(plain, call, self.known.task_files, self.state.read):
            runs.append((text, label))
            read = self.code if is_code else self.text
            self.within(label, partial(read, text))
        for name in () if runs else recipes.targets_of(plain, call):
            self._unread(name, call)

    def _git(self, call: Call) -> None:
        """Read what an alias stands for. A shell alias that is being defined is read as if it ran."""
        if call.positionals[:1] == ("config",) and call.words[-1].startswith("!"):
            self.text(call.words[-1][1:])
        if (alias := self.state.alias_of_git(call)) is not None:
            verb, value = alias
            given = shlex.join(after(call.words, verb))
            text = f"{value[1:]} {given}" if value.startswith("!") else f"git {value} {given}"
            self.within(f"git {verb}", partial(self.text, text))

    def _wrapped(self, key: str, words: list[str], own: Mapping[str, str], stdin: str | None) -> None:
        wrapper = self.known.wrappers[key]
        inner = inner_words(key, wrapper, words, stdin)
        outer = self.state.place
        self.state.place = replace(outer, in_network=outer.in_network or wrapper.network)
        if key in _IMAGES and (image := image_of(words, wrapper)):
            self._run([image, *inner], own, stdin)  # the image's entry point may be the program it is named after
        if key in _PACKAGES and inner and (program := program_of(inner[0])) != inner[0]:
            self._run([program, *inner[1:]], own)
        if len(inner) == 1 and " " in inner[0]:
            self._joined(inner)
        else:
            self._run(inner, own, stdin if key != "xargs" else None)
        self.state.place = replace(self.state.place, in_network=outer.in_network)

    def _run(self, words: list[str], own: Mapping[str, str] = _NOTHING, stdin: str | None = None) -> None:
        """Read a command that another command runs."""
        self.depth += 1
        self.words(words, own, stdin)
        self.depth -= 1

    def _shell_option(self, key: str, call: Call) -> None:
        for option in self.known.shell_options[key]:
            for text in call.values(option):
                outer, self.state = self.state, self.state.forked()
                given = enumerate(after(call.words, text))
                self.state.variables |= {str(at): word for at, word in given}
                self.decoded(text)
                self.text(text)
                self.state = outer

    def _joined(self, words: list[str]) -> None:
        text = " ".join(word for word in words if word != ":::")
        self.decoded(text)
        if not text.startswith(UNKNOWN):
            self.text(text)

    def _shell(self, call: Call, stdin: str | None) -> None:
        """Read what a shell runs: a file, or its standard input."""
        file = next(iter(call.positionals), None)
        is_input = file in ("-", "/dev/stdin")
        if any(True for _ in call.values("-c")) or (call.program in ("source", ".") and not is_input):
            self.decoded(file or "")
            return
        if file is None or is_input:
            if stdin is None:
                self._typed(call)
            else:
                self.decoded(stdin)
                self.text(stdin)
        elif file.startswith(UNKNOWN):
            self.decoded(file)
        else:
            self.file(file, after(call.words, file), in_shell=True)

    def _typed(self, call: Call) -> None:
        """Note a program that will run whatever is typed into it. ``--version`` and the like start no such session."""
        if _INTERACTIVE.issuperset(call.words):
            self.note(self.known.kinds["hidden"], " ".join((call.program, *call.words)))

    def _interpreter(self, plain: str, call: Call, stdin: str | None) -> None:
        options = self.known.code_options[plain]
        texts = [text for option in options for text in call.values(option) if text]
        if call.positionals[:1] and call.positionals[0] in options:
            texts += call.positionals[1:2]
        loaded = [name for option in self.known.preloading.get(plain, ()) for name in call.values(option)]
        for text in texts:
            self.code("".join(f"require '{name}'\n" for name in loaded) + text)
        if plain in ("python", "pypy") and (module := next(iter(call.values("-m")), None)):
            self._run([module, *after(call.words, module)], stdin=stdin)
            self.file(f"{module.replace('.', '/')}.py", after(call.words, module))
        elif plain in ("awk", "gawk"):
            self.code(" ".join(call.positionals[:1]))
        elif not texts:
            file = next(iter(call.positionals), None)
            if plain in ("deno", "bun") and file == "run":
                file = next(iter(call.positionals[1:]), None)
            if file is None or file == "-":
                if stdin is None:
                    self._typed(call)
                else:
                    self.code(stdin)
            else:
                self.file(file, after(call.words, file))
                # A project's script may be a program with patterns of its own: `python manage.py flush`.
                name = posixpath.basename(file)
                if self.known.patterns.get(name):
                    self.judge(replace(call, program=name, words=tuple(after(call.words, file))))

    def file(self, path: str, given: Sequence[str], *, in_shell: bool = False, sourced: bool = False) -> None:
        if not path or path.startswith(UNKNOWN) or self.state.is_allowed(line_of([path, *given]), self.allowed):
            return
        self.judge(Call(SCRIPT, (path, *given), {}, self.state.place))
        text = self.state.read(path)
        if text is None:
            self._unread(posixpath.basename(path), Call(path, tuple(given), {}, self.state.place))
            return
        if "\x00" in text[:1_000]:
            return
        outer = self.state
        self.state = outer if sourced else outer.forked()
        self.state.variables |= {str(at): word for at, word in enumerate(given, 1)} | {"0": path}
        first = text.partition("\n")[0]
        if first.startswith("#!"):
            in_shell = in_shell or re.search(r"\b(?:ba|z|da|k|a|fi)?sh\b", first) is not None
        else:
            in_shell = in_shell or sourced or posixpath.splitext(path)[1] in ("", ".sh", ".bash", ".zsh", ".ksh")
        self.within(path, lambda: self.text(text) if in_shell else self.code(text))
        self.state = outer

    def _unread(self, name: str, call: Call) -> None:
        """Note a deployment if the name of a target or script that cannot be read suggests one."""
        if any(fnmatchcase(name, telling) for telling in self.known.telling_names):
            self.note(self.known.kinds["deployment"], line_of((call.program, *call.words)))
