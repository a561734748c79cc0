"""What a command line does, and how far it would have to reach: all that it runs, however it is wrapped.

Nothing is run. Scripts, recipes of make and scripts of package.json are read where ``Place.read`` gives their text.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final

from claudomator_py.acts import code, recipes
from claudomator_py.acts.catalogue import ActKind, Catalogue, catalogue, without_version
from claudomator_py.acts.pattern import UNKNOWN, Call
from claudomator_py.acts.place import Place
from claudomator_py.acts.reach import Reach
from claudomator_py.acts.shell import (
    Case,
    Command,
    Function,
    Group,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Script,
    Substitution,
    Variable,
    Word,
    parse,
)
from claudomator_py.acts.state import State
from claudomator_py.acts.wrapped import after, executed, image_of, inner_words, longest_key

MAX_DEPTH: Final = 8
"""Texts within each other that are read: ``sh -c``, scripts, recipes. Deeper ones are told as hidden."""
MAX_COMMANDS: Final = 3_000
"""Commands that are looked at for one command line. A line that has more is told as hidden; a script is not."""
_MAX_SHOWN: Final = 300
_DECODERS = frozenset({"base64", "base32", "xxd", "openssl", "uudecode", "rev", "gunzip", "zcat", "tr", "gpg", "rot13"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash", "source", "."})
_INTERACTIVE = frozenset(
    {"-i", "-l", "-il", "-li", "-s", "-", "-q", "-u", "-B", "-x", "-e", "--login", "--interactive"}
)
_IMAGES = frozenset({"docker run", "podman run", "nerdctl run"})
_SCRIPT: Final = "a-script"
"""The program for which the data has what scripts of the project do, whatever runs them."""
_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that a command line does."""

    command: str
    """The command that does it, as it would run, cut to what can be shown."""
    kind: str
    """As in the data: ``package``, ``git-publish`` ..."""
    reach: Reach
    """The least that allows it."""
    does: str
    """In words for people: "publishes a package"."""


def acts(
    command_line: str,
    place: Place | None = None,
    known: Catalogue | None = None,
    allowed: Collection[str] = (),
) -> tuple[Act, ...]:
    """Return what the command line does beyond the working directory, each once, in order; empty: nothing known.

    allowed: commands that a person has allowed, each as ``Act.command`` has it: what they do is left out.
    """
    reader = _Reader(known or catalogue(), State(place or Place()), allowed=frozenset(allowed))
    reader.text(command_line)
    return tuple(dict.fromkeys(reader.acts))


def code_acts(text: str, place: Place | None = None, known: Catalogue | None = None) -> tuple[Act, ...]:
    """Return what program code does, and the commands that it starts, as ``acts``."""
    reader = _Reader(known or catalogue(), State(place or Place()))
    reader.code(text)
    return tuple(dict.fromkeys(reader.acts))


def least_reach(found: Sequence[Act]) -> Reach:
    """Return the least reach that allows all of these."""
    return max((act.reach for act in found), key=lambda reach: reach.rank, default=Reach.TREE)


@dataclass(slots=True)
class _Reader:
    known: Catalogue
    state: State
    acts: list[Act] = field(default_factory=list)
    allowed: frozenset[str] = frozenset()
    depth: int = 0
    left: int = MAX_COMMANDS
    _running: list[str] = field(default_factory=list)
    """Functions, files and recipes that are being read, so that none is read within itself."""

    # --- texts ---

    def text(self, text: str) -> None:
        """Read shell text."""
        if self._is_spent(text):
            return
        self.depth += 1
        self._script(parse(text))
        self.depth -= 1

    def code(self, text: str) -> None:
        """Read program code."""
        for kind, said in code.does(text, self.known.code):
            self._note(kind, said)
        for command in code.commands(text):
            if isinstance(command, str):
                self.text(command)
            else:
                self._words(list(command), {}, None)

    def _is_spent(self, text: str) -> bool:
        """Whether nothing more is read. Unless it is a long script, that is told: nobody writes such a line."""
        is_spent = self.left < 0 or self.depth >= MAX_DEPTH
        if is_spent and not self._running:
            self._note(self.known.kinds["hidden"], text)
        return is_spent

    def _script(self, script: Script) -> None:
        for node in script:
            self._node(node, None)

    def _node(self, node: Node, piped: str | None) -> str | None:
        """Read it. piped: what it reads, as far as that is known. Return what it prints, if that is known."""
        self.left -= 1
        if self._is_spent("..."):
            return None
        match node:
            case Command():
                return self._command(node, piped)
            case Pipeline():
                for place, stage in enumerate(node.stages):
                    printed = self._node(stage, piped)
                    piped = UNKNOWN if printed is None and place + 1 < len(node.stages) else printed
                return piped
            case Group():
                outer = self.state
                self.state = outer.forked() if node.in_subshell else outer
                said = [self._node(one, piped) for one in node.body]
                self.state = outer
                self._written(node.redirects, None)
                return _all_of(said)
            case Function():
                self.state.functions[node.name] = node.body
            case Case():
                subject = self._text_of(node.subject)
                for patterns, body in node.branches:
                    if UNKNOWN in subject or any(fnmatchcase(subject, one) for one in patterns):
                        self._script(body)
                        if UNKNOWN not in subject:
                            break
            case Loop():
                values = [one for word in node.values for one in self._expanded(word)] or [f"{UNKNOWN}{node.name}"]
                for value in values:
                    self.state.variables[node.name] = value
                    self._script(node.body)
        return None

    # --- words ---

    def _expanded(self, word: Word) -> list[str]:
        """The words that it becomes: an unquoted variable may hold several."""
        found = [""]
        for part in word:
            if isinstance(part, str):
                found[-1] += part
                continue
            said = self._part(part)
            pieces = [said] if part.quoted or said.startswith(UNKNOWN) else said.split()
            if not pieces:
                continue
            found[-1] += pieces[0]
            found += pieces[1:]
        return found if found != [""] or any(isinstance(part, str) or part.quoted for part in word) else []

    def _text_of(self, word: Word) -> str:
        return "".join(part if isinstance(part, str) else self._part(part) for part in word)

    def _part(self, part: Variable | Substitution) -> str:
        if isinstance(part, Variable):
            value = self.state.value(part.name)
            if value is None and part.default is not None:
                return self._text_of(part.default)
            return f"{UNKNOWN}{part.name}" if value is None else value
        outer, self.state = self.state, self.state.forked()
        said = [self._node(node, None) for node in part.body]
        self.state = outer
        known = _all_of(said)
        return f"{UNKNOWN}{part.text.removeprefix(UNKNOWN)}" if known is None else known.strip()

    # --- commands ---

    def _command(self, command: Command, piped: str | None) -> str | None:
        own = {name: self._text_of(word) for name, word in command.assignments if name}
        for name, word in command.assignments:
            if not name:
                self._text_of(word)
        for name in self.known.starting.intersection(own):
            self.text(own[name])
        words = [one for word in command.words for one in self._expanded(word)]
        stdin = piped
        for redirect in command.redirects:
            said = self._text_of(redirect.target)
            if redirect.operator in ("<<", "<<<"):
                stdin = said
            elif redirect.operator == "<":
                stdin = self.state.read(said) or UNKNOWN
                self._judge(Call("cat", (said,), own, self.state.place))
        if not words:
            self.state.variables |= own
            self._written(command.redirects, stdin)
            return None
        printed = self._words(words, own, stdin)
        self._written(command.redirects, printed)
        return printed

    def _written(self, redirects: Sequence[Redirect], printed: str | None) -> None:
        """Note the files that are written to. printed: what goes there, if that is known."""
        for redirect in redirects:
            if ">" not in redirect.operator or redirect.operator in ("<>", ">&"):
                continue
            path = self._text_of(redirect.target)
            self._judge(Call("tee", (path,), {}, self.state.place))
            if printed is not None:
                self.state.write(path, printed, more=redirect.operator.endswith(">>"))

    def _words(self, words: list[str], own: Mapping[str, str], stdin: str | None) -> str | None:
        """Read one command, and what it runs in turn. Return what it prints, if that is known."""
        self.left -= 1
        while words and (found := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
            own, words = {**own, found[1]: found[2]}, words[1:]
        if not words or self._is_spent(" ".join(words)):
            return None
        path, rest = words[0], tuple(words[1:])
        if path.startswith(UNKNOWN) and len(path) > 1:
            self._decoded(path)
            return None
        name = posixpath.basename(path.rstrip("/")).removesuffix(".exe").removesuffix(".cmd") or path
        if name in self.state.functions and name not in self._running:
            self._within(name, lambda: self._script(self.state.functions[name]))
            return None
        if not own and stdin is None and self.state.is_allowed(line_of(words), self.allowed):
            return None
        variables = {name: value for name, value in self.state.variables.items() if name.isupper()} | dict(own)
        call = Call(name, rest, variables, self.state.place, self._valued(name, rest))
        self._judge(call)
        self.state.change(call, self.known.files.branches)
        self._nested(call, own, stdin)
        if "/" in path or name in ("source", "."):
            script, *given = words if "/" in path else rest or ("",)
            self._file(script, given, sourced="/" not in path)
        return self._printed(call, stdin)

    def _valued(self, name: str, rest: tuple[str, ...]) -> frozenset[str]:
        plain = without_version(name)
        options = self.known.values.get(plain, frozenset())
        return options | self.known.values.get(f"{plain} {next(iter(rest), '')}", frozenset())

    def _judge(self, call: Call) -> None:
        kinds = self.known.kinds_of(call)
        for kind in kinds:
            self._note(kind, line_of(call.words if call.program == _SCRIPT else (call.program, *call.words)))

    def _note(self, kind: ActKind, said: str) -> None:
        line = " ".join(said.split())
        shown = line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 3]}..."
        self.acts.append(Act(shown, kind.kind, kind.reach, kind.does))

    def _printed(self, call: Call, stdin: str | None) -> str | None:
        """What it prints, where that is plain."""
        if call.program in ("echo", "printf"):
            words = [word for word in call.words if not re.fullmatch(r"-[neE]+", word)]
            if call.program == "printf" and words:
                return _formatted(words[0], words[1:])
            return " ".join(words)
        if call.program in ("cat", "tee"):
            if call.program == "tee" and stdin is not None:
                for path in call.positionals:
                    self.state.write(path, stdin, more=call.has("-a"))
            if call.program == "cat" and call.positionals:
                texts = [self.state.read(path) for path in call.positionals]
                return None if None in texts else "\n".join(text for text in texts if text is not None)
            return stdin
        return f"{UNKNOWN}({call.program})" if call.program in _DECODERS else None

    # --- what runs other commands ---

    def _nested(self, call: Call, own: Mapping[str, str], stdin: str | None) -> None:
        plain = without_version(call.program)
        words = list(call.words)
        key, rest = longest_key(plain, words, self.known.wrappers, self.known)
        if key is not None:
            self._wrapped(key, rest, own, stdin)
        key, rest = longest_key(plain, words, self.known.shell_options, self.known)
        if key is not None:
            self._shell_option(key, call, own)
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
            for word in words:
                if "alias." in word and "=!" in word:
                    self.text(word.partition("=!")[2])
            if words[:1] == ["config"] and any("alias." in word for word in words) and words[-1].startswith("!"):
                self.text(words[-1][1:])
        found = list(recipes.run_by(plain, call, self.state.read))
        for text, label in found:
            self._within(label, lambda text=text: self.text(text))  # type: ignore[misc]
        if not found and (name := recipes.target_of(plain, call)) is not None:
            self._unread(name, call)

    def _wrapped(self, key: str, words: list[str], own: Mapping[str, str], stdin: str | None) -> None:
        inner = inner_words(key, self.known.wrappers[key], words, stdin)
        if key in _IMAGES and (image := image_of(words, self.known.wrappers[key])):
            self._run([image, *inner], own, stdin)  # as its entry point may be the program that it is named for
        if len(inner) == 1 and " " in inner[0]:
            self._joined(inner)
        else:
            self._run(inner, own, stdin if key != "xargs" else None)

    def _run(self, words: list[str], own: Mapping[str, str] = _NOTHING, stdin: str | None = None) -> None:
        """Read a command that another one runs."""
        self.depth += 1
        self._words(words, own, stdin)
        self.depth -= 1

    def _shell_option(self, key: str, call: Call, own: Mapping[str, str]) -> None:
        for option in self.known.shell_options[key]:
            for text in call.values(option):
                outer, self.state = self.state, self.state.forked()
                given = enumerate(after(call.words, text))
                self.state.variables |= {str(at): word for at, word in given} | dict(own)
                self._decoded(text)
                self.text(text)
                self.state = outer

    def _joined(self, words: list[str]) -> None:
        text = " ".join(word for word in words if word != ":::")
        self._decoded(text)
        if not text.startswith(UNKNOWN):
            self.text(text)

    def _shell(self, call: Call, stdin: str | None) -> None:
        """A shell that runs a file, or what it reads."""
        if any(True for _ in call.values("-c")) or call.program in ("source", "."):
            for word in call.positionals[:1]:
                self._decoded(word)
            return
        file = next(iter(call.positionals), None)
        if file is None or file in ("-", "/dev/stdin"):
            if stdin is None:
                self._typed(call)
            else:
                self._decoded(stdin)
                self.text(stdin)
        elif file.startswith(UNKNOWN):
            self._decoded(file)
        else:
            self._file(file, after(call.words, file), in_shell=True)

    def _typed(self, call: Call) -> None:
        """Note that it runs what is typed into it later, which nobody reads beforehand, unless it is only asked of."""
        if _INTERACTIVE.issuperset(call.words):
            self._note(self.known.kinds["hidden"], " ".join((call.program, *call.words)))

    def _decoded(self, text: str) -> None:
        """Note that it runs what is decoded first, if it does."""
        if text.startswith(UNKNOWN) and any(re.search(rf"\b{one}\b", text) for one in _DECODERS - {"tr"}):
            self._note(self.known.kinds["hidden"], text)

    def _interpreter(self, plain: str, call: Call, stdin: str | None) -> None:
        options = self.known.code_options[plain]
        found = [text for option in options for text in call.values(option) if text]
        for text in found:
            self.code(text)
        if plain in ("python", "pypy") and (module := next(iter(call.values("-m")), None)):
            self._run([module, *after(call.words, module)], stdin=stdin)
            self._file(f"{module.replace('.', '/')}.py", after(call.words, module))
        elif plain in ("awk", "gawk"):
            self.code(" ".join(call.positionals[:1]))
        elif not found:
            file = next(iter(call.positionals), None)
            if plain in ("deno", "bun") and file == "run":
                file = next(iter(call.positionals[1:]), None)
            if file is None or file == "-":
                if stdin is None:
                    self._typed(call)
                else:
                    self.code(stdin)
            else:
                self._file(file, after(call.words, file))
                # Programs of a project that are scripts have commands of their own: ``python manage.py flush``.
                name = posixpath.basename(file)
                if self.known.patterns.get(name):
                    self._judge(replace(call, program=name, words=tuple(after(call.words, file))))

    def _file(self, path: str, given: Sequence[str], *, in_shell: bool = False, sourced: bool = False) -> None:
        """A script that is run. given: its words. sourced: what it sets stays."""
        if not path or path.startswith(UNKNOWN) or self.state.is_allowed(line_of([path, *given]), self.allowed):
            return
        self._judge(Call(_SCRIPT, (path, *given), {}, self.state.place))
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
        self._within(path, lambda: self.text(text) if in_shell else self.code(text))
        self.state = outer

    def _unread(self, name: str, call: Call) -> None:
        """Note what the name of a target or script tells that cannot be read."""
        if any(fnmatchcase(name, telling) for telling in self.known.telling_names):
            self._note(self.known.kinds["deployment"], line_of((call.program, *call.words)))

    def _within(self, label: str, read: Callable[[], None]) -> None:
        if label in self._running:
            return
        self._running.append(label)
        read()
        self._running.pop()


def line_of(words: Sequence[str]) -> str:
    """Return the command of these words on one line. Those in which there are blanks are quoted."""
    return " ".join(word if word and not any(map(str.isspace, word)) else repr(word) for word in words)


def _all_of(printed: Sequence[str | None]) -> str | None:
    """What several commands print, if it is known of each."""
    return None if not printed or None in printed else "\n".join(said for said in printed if said is not None)


def _formatted(form: str, words: Sequence[str]) -> str:
    rest = list(words)
    said = re.sub(r"%[sqb]", lambda _: rest.pop(0) if rest else "", form)
    return said.replace("\\n", "\n").replace("\\t", "\t")
