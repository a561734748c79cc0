"""The shell text that a project's targets and scripts run: make, npm and relatives, just, Task, composer."""

import json
import re
from collections.abc import Callable, Iterator

from claudomator_py.acts.pattern import Call
from claudomator_py.values import regex

Read = Callable[[str], str | None]
MAX_TARGETS = 60
"""Targets that are followed for one command, prerequisites included."""
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_RULE = regex(r"^(?![\t#.]PHONY)([^\s:#=][^:#=]*?)\s*::?(?!=)\s*([^#=;]*)(?:;(.*))?$")
_MAKE_VARIABLE = regex(r"^\s*(?:export\s+|override\s+)?([A-Za-z_][\w.-]*)\s*(?:::?:?|\?|\+)?=\s*(.*)$")
_INCLUDE = regex(r"^[-s]?include[ \t]+([^\n#]+)$", re.MULTILINE)
_MAX_INCLUDED = 10
_REFERENCE = regex(r"\$[({]([A-Za-z_][\w.-]*)[)}]")
_PACKAGE_PROGRAMS = frozenset({"npm", "pnpm", "yarn", "bun", "cnpm", "npm-run-all", "run-s", "run-p"})
_RUNNERS = frozenset({
    "make", "gmake", "bmake", "just", "task", "go-task", "rake", "invoke", "inv", "mage", "poe", "gulp", "grunt", "ant",
    "turbo", "nx", "moon", "lerna", "bazel", "bazelisk", "pants", "earthly", "dagger", "ninja", "buck2", "rush", "waf",
})  # fmt: skip
_RUNNING = frozenset({"run", "run-script", "run-many", "affected", "call"})
_OF_PROJECT = regex(r"[:+]")
_LIFECYCLE = frozenset({"test", "start", "stop", "restart", "t", "tst", "version", "publish", "install", "prepare"})


def run_by(program: str, call: Call, read: Read) -> Iterator[tuple[str, str]]:
    """Yield the shell texts that the command takes from the project's files, each with a label."""
    if program in ("make", "gmake", "bmake"):
        yield from _make(call, read)
    elif program in _PACKAGE_PROGRAMS:
        yield from _package(program, call, read)
    elif program == "composer":
        yield from _composer(call, read)
    elif program in ("just", "task", "go-task"):
        yield from _listed(program, call, read)


def targets_of(program: str, call: Call) -> tuple[str, ...]:
    """Return the names of the targets or scripts that the command would run, without the projects that they are of:
    ``deploy`` for ``web:deploy``."""
    if call.has("-n") or call.has("--dry-run"):
        return ()
    words = [word for word in call.positionals if "=" not in word]
    named = [word for word in words if word not in _RUNNING]
    if program in _RUNNERS:
        return tuple(_OF_PROJECT.split(word)[-1] for word in named)
    if program in _PACKAGE_PROGRAMS and (len(named) < len(words) or program in ("yarn", "pnpm")):
        return tuple(named[:1])
    return ()


def _folder(call: Call, *options: str) -> str:
    named = _named(call, *options)
    return f"{named.rstrip('/')}/" if named else ""


def _named(call: Call, *options: str) -> str:
    return next((value for option in options for value in call.values(option) if value), "")


def _make(call: Call, read: Read) -> Iterator[tuple[str, str]]:
    folder = _folder(call, "-C", "--directory")
    named = _named(call, "-f", "--file", "--makefile")
    names = [named] if named else _MAKEFILES
    text = next((content for name in names if (content := read(folder + name)) is not None), None)
    if text is None or call.has("-n") or call.has("--dry-run"):
        return
    text = _INCLUDE.sub(lambda match: _included(match[1], folder, read), text)
    variables, rules, default = _rules(text)
    given = dict(word.split("=", 1) for word in call.positionals if "=" in word)
    variables |= given
    wanted = [word for word in call.positionals if "=" not in word] or ([default] if default else [])
    done: set[str] = set()
    while wanted and len(done) < MAX_TARGETS:
        target = wanted.pop(0)
        if target in done:
            continue
        done.add(target)
        for pattern in (target, *(other for other in rules if "%" in other and _is_like(target, other))):
            before, recipe = rules.get(pattern, ([], []))
            wanted += before
            body = "\n".join(_filled(line, variables).replace("$@", target).replace("$$", "$") for line in recipe)
            if body:
                prefix = f"cd {folder}\n" if folder else ""
                yield prefix + body, f"make {target}"


def _included(names: str, folder: str, read: Read) -> str:
    return "\n".join(read(folder + name) or "" for name in names.split()[:_MAX_INCLUDED])


def _is_like(target: str, pattern: str) -> bool:
    return re.fullmatch(".+".join(re.escape(part) for part in pattern.split("%")), target) is not None


def _rules(text: str) -> tuple[dict[str, str], dict[str, tuple[list[str], list[str]]], str | None]:
    """Return a makefile's variables, the prerequisites and recipe of each target, and the first target."""
    variables: dict[str, str] = {}
    rules: dict[str, tuple[list[str], list[str]]] = {}
    current: list[str] = []
    first: str | None = None
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith("\t"):
            command = line.lstrip("\t").lstrip(" @-+")
            for target in current:
                rules[target][1].append(command)
        elif setting := _MAKE_VARIABLE.match(line):
            variables[setting[1]] = setting[2].strip()
        elif rule := _RULE.match(line):
            current = _filled(rule[1], variables).split()
            for target in current:
                before, recipe = rules.setdefault(target, ([], []))
                before += [word for word in _filled(rule[2], variables).split() if word != "|"]
                recipe += [rule[3].strip()] if rule[3] else []
            if first is None and current and not current[0].startswith("."):
                first = current[0]
        elif line.strip() and not line.startswith(("#", " ")):
            current = []
    return variables, rules, first


def _filled(text: str, variables: dict[str, str]) -> str:
    for _ in range(5):
        filled = _REFERENCE.sub(lambda match: variables.get(match[1], f"${{{match[1]}}}"), text)
        if filled == text:
            break
        text = filled
    return text.replace("${MAKE}", "make").replace("$(MAKE)", "make").replace("$(shell ", "$(")


def _package(program: str, call: Call, read: Read) -> Iterator[tuple[str, str]]:
    words = [word for word in call.positionals if word != "workspace"]
    if not words:
        return
    if program in ("npm-run-all", "run-s", "run-p"):
        names = words
    elif words[0] in ("run", "run-script", "rum", "urn"):
        names = words[1:2]
    elif program in ("pnpm", "yarn") or words[0] in _LIFECYCLE:
        names = words[:1]
    else:
        return
    folder = _folder(call, "--prefix", "-C", "--dir", "--cwd")
    scripts = _json(read(f"{folder}package.json"), "scripts")
    for name in names:
        name = {"t": "test", "tst": "test"}.get(name, name)
        for script_name in (f"pre{name}", name, f"post{name}"):
            if isinstance(script := scripts.get(script_name), str):
                given = " ".join(call.words[call.words.index("--") + 1 :]) if "--" in call.words else ""
                yield f"{script} {given}".strip() if script_name == name else script, f"script {script_name}"


def _composer(call: Call, read: Read) -> Iterator[tuple[str, str]]:
    words = [word for word in call.positionals if word not in ("run", "run-script", "exec")]
    scripts = _json(read("composer.json"), "scripts")
    script = scripts.get(words[0]) if words else None
    for line in [script] if isinstance(script, str) else script if isinstance(script, list) else []:
        if isinstance(line, str):
            yield line.removeprefix("@"), f"composer {words[0]}"


def _json(text: str | None, key: str) -> dict[str, object]:
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    entry = document.get(key) if isinstance(document, dict) else None
    return entry if isinstance(entry, dict) else {}


def _listed(program: str, call: Call, read: Read) -> Iterator[tuple[str, str]]:
    """Yield the indented lines below ``target:`` in a justfile or Taskfile."""
    names = ("justfile", "Justfile", ".justfile") if program == "just" else ("Taskfile.yml", "Taskfile.yaml")
    text = next((content for name in names if (content := read(name)) is not None), None)
    if text is None:
        return
    wanted, done = list(call.positionals[:1]), set[str]()
    while wanted and len(done) < MAX_TARGETS:
        target = wanted.pop(0)
        if target in done:
            continue
        done.add(target)
        header = re.search(rf"^([ \t]*)@?{re.escape(target)}\b([^\n:=]*):(?!=)([^\n]*)\n", text, re.MULTILINE)
        if header is None:
            continue
        lines = []
        for line in text[header.end() :].split("\n"):
            if line.strip() and len(line) - len(line.lstrip()) <= len(header[1]):
                break
            lines.append(re.sub(r"^\s*(?:- (?:cmd: )?)?[@-]?", "", line).strip().strip("'\""))
        wanted += header[3].split() if program == "just" else []
        yield "\n".join(re.sub(r"\{\{.*?\}\}", "$TEMPLATE", line) for line in lines), f"{program} {target}"
