"""Changes to the deciding modules, one at a time, that some unit test of the module has to notice: ``make mutants``.

A mutant is a module in which one small thing is wrong: a comparison at its boundary, ``and`` for ``or``, a guard that
never holds, a flag turned round, a call that is left out. The module's own unit tests are run against it, and only
these: what falls to an end-to-end test alone lives here. No file is touched: each mutant has a process of its own,
forked from one that has collected the tests already, and its functions are exchanged there.

    python -m tests.mutants                          # every module of MODULES
    python -m tests.mutants scheduler/plan.py        # only this one
    python -m tests.mutants --sample 40 --seed 1     # at most so many of each; the same ones for the same seed
    python -m tests.mutants --only "left out"        # those whose name, as it is printed, has these words
"""

import argparse
import ast
import gc
import importlib.util
import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import pytest
from hypothesis import HealthCheck, settings

_Place = tuple[str, int]
"""A function of a module: its qualified name and its first line."""

ROOT = Path(__file__).parents[1]
PACKAGE = "claudomator_py"
LONGEST_S = 120
"""Seconds for the tests of one mutant: one that never ends is noticed too."""
LONGEST_TEST_S = 30
"""Seconds for one of them, of which none takes three."""

_SCHEDULER = "tests/unit/scheduler"
_DISPATCH = "tests/unit/dispatch"
_ROUTING = "tests/unit/routing"
MODULES = {
    "scheduler/plan.py": [_SCHEDULER],
    "scheduler/admission.py": [_SCHEDULER],
    "scheduler/snapshot.py": [_SCHEDULER],
    "scheduler/tiers.py": [_SCHEDULER],
    "scheduler/classification.py": [f"{_SCHEDULER}/test_tier.py", f"{_SCHEDULER}/test_tiers.py"],
    "scheduler/balance.py": [_SCHEDULER],
    "scheduler/lanes.py": [_SCHEDULER, "tests/unit/domain/test_demands.py"],
    "scheduler/after_run.py": [f"{_SCHEDULER}/test_ending.py"],
    "domain/limits.py": ["tests/unit/domain/test_limits.py"],
    "domain/outcome.py": ["tests/unit/domain/test_outcome.py"],
    "domain/lifecycle.py": ["tests/unit/domain/test_lifecycle.py"],
    "domain/readiness.py": ["tests/unit/domain/test_schedule.py"],
    "domain/breaker.py": ["tests/unit/domain/test_breaker.py"],
    "dispatch/classify.py": [f"{_DISPATCH}/test_classifying.py"],
    "dispatch/probing.py": [f"{_DISPATCH}/test_probing.py"],
    "dispatch/start.py": [
        f"{_DISPATCH}/test_starting.py",
        f"{_DISPATCH}/test_item_faults.py",
        f"{_DISPATCH}/test_going_on.py",
        f"{_DISPATCH}/test_handoffs.py",
    ],
    "dispatch/collect.py": [
        f"{_DISPATCH}/test_ends.py",
        f"{_DISPATCH}/test_checks.py",
        f"{_DISPATCH}/test_limits.py",
        f"{_DISPATCH}/test_live_runs.py",
    ],
    "dispatch/apply_report.py": [
        f"{_DISPATCH}/test_judging.py",
        f"{_DISPATCH}/test_reports.py",
        f"{_DISPATCH}/test_checks.py",
        f"{_DISPATCH}/test_ends.py",
    ],
    "routing/choice.py": [f"{_ROUTING}/test_choice.py"],
    "routing/triage.py": [f"{_ROUTING}/test_triage.py"],
    "routing/handing_on.py": [f"{_ROUTING}/test_handing_on.py"],
    "routing/role.py": [f"{_ROUTING}/test_role.py"],
    "routing/steering.py": [f"{_ROUTING}/test_steering.py"],
    "policy/verdict.py": ["tests/unit/policy/test_verdict.py"],
    "hosts/reporting.py": ["tests/unit/hosts/test_reporting.py"],
    "store/hold_rows.py": ["tests/unit/store/test_hold_rows.py"],
}
"""The modules that decide what runs where, when and what follows from its end, and the unit tests that hold each."""

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}


EQUIVALENT = {
    "domain/limits.py: the condition is True: return outcome.model_copy(update=changes) if changes else outcome": (
        "a copy without changes is equal"
    ),
    "domain/limits.py: Gt -> GtE: "
    "if outcome.near_limit_until is not None and outcome.near_limit_until > latest_ms:": "it is cut to what it is",
    "domain/limits.py: the condition is True: "
    "longer = min(max(2 * length, first.until_ms - now_ms if first.until_ms else 0), longest_ms)": (
        "an estimate always has an end"
    ),
    "scheduler/admission.py: the condition is True: "
    "return named_by(head.agent_type, agents) if head.agent_type else ()": "no agent is of no name and no kind",
    "scheduler/snapshot.py: the condition is False: if self.tried:": "whatever is in force ends after what is over",
    "routing/steering.py: the condition is False: "
    "if _STEERS.search(text) is None and _ADDRESSES.search(text) is None:": "it only saves a search that finds nothing",
    "policy/verdict.py: the condition is True: if rule.tier is not None:": "what was left a tier before is left one",
    "policy/verdict.py: the condition is True: verdict, context = "
    "Verdict(risk=facts.risk), context_of(facts.values) if self._conditions else None": "no condition looks at it",
    "policy/verdict.py: the condition is True: if rule.risk is not None and self._conditions:": (
        "of the same facts follows the same context"
    ),
    "policy/verdict.py: And -> Or: if rule.risk is not None and self._conditions:": (
        "of the same facts follows the same context"
    ),
    "scheduler/admission.py: the condition is True: kept = load.kept_from(head) if head.dir_key else ()": (
        "nothing but directories is kept"
    ),
    "scheduler/admission.py: LtE -> Lt: return kinds <= set(BY_NAME_KINDS)": "a hint means one kind of several",
    "scheduler/admission.py: any -> all: by_name_only = "
    "not any(agent.auto_select for agent in hinted) if hinted else head.agent_type in BY_NAME_KINDS": (
        "what a hint means is open to balancing as a whole, or not at all"
    ),
    "scheduler/admission.py: any -> all: if not any(agent.auto_select for agent in meant):": (
        "what a hint means is open to balancing as a whole, or not at all"
    ),
    "scheduler/admission.py: no filter: because = "
    "tuple(one for one in rejected if one is not None) if hinted else (_unknown(head.agent_type),)": (
        "what cannot take the task now has a reason"
    ),
    "dispatch/apply_report.py: left out: self._tell(subject, ended)": "it only writes the log",
    "dispatch/apply_report.py: the condition is True: "
    'told = {} if outcome.reason is None else {"reason": outcome.reason.value}': "only the log says it",
    "dispatch/apply_report.py: the condition is False: if known is not None and not known.spec.check:": (
        "what is known already is only read again"
    ),
    "dispatch/apply_report.py: the condition is True: spec = None if known is None else known.spec": (
        "what is known already is only read again"
    ),
    "dispatch/apply_report.py: the condition is True: "
    "if (run.asked, run.over_budget) != (subject.run.asked, subject.run.over_budget):": "the same is judged alike",
    "dispatch/apply_report.py: the condition is True: "
    'step = run.check_seq if run.state == "checking" else 0': "only a run that is being checked has begun a check",
    "store/hold_rows.py: the condition is True: "
    "same = _on(hold.bucket) & (HOLD.c.reason == (hold.reason.value if hold.reason is not None else None))": (
        "what a run has met has a reason"
    ),
    "dispatch/collect.py: the condition is False: if task is not None and spec is not None:": (
        "what is known already is only read again"
    ),
    "dispatch/collect.py: the condition is True: "
    "self._probes = _probes(connection, silent, now_ms) if silent else set()": "of no runs none tries a limit",
    "dispatch/collect.py: the condition is True: "
    'step = run.check_seq if run.state == "checking" else 0': "only a run that is being checked has begun a check",
    "dispatch/collect.py: lazily=True -> False: "
    "self._begun.append((subject, self._database.submit(reaching, planned=True, lazily=True)))": (
        "it only costs a commit of its own"
    ),
    "dispatch/start.py: the condition is True: "
    "spending=spending_rows.of_task(connection, task.id) if subject.spec.budget.units else Spending(),": (
        "without a budget nobody asks what is left of it"
    ),
    "store/hold_rows.py: strict=True -> False: columns = dict(zip(_NAMES, row, strict=True))": (
        "a row has the columns that were asked for"
    ),
    "dispatch/start.py: the condition is False: if not starts:": "of no starts nothing is begun",
    "dispatch/start.py: the condition is True: "
    "runs = run_rows.of_task(connection, task.id) if task.seq > 0 else ()": "before its first run it has none",
    "dispatch/start.py: the condition is True: "
    "handed = hops(connection, task.id, task.generation) if task.seq > 0 else ()": "without a run nothing is handed on",
    "dispatch/start.py: Gt -> GtE: "
    "runs = run_rows.of_task(connection, task.id) if task.seq > 0 else ()": "before its first run it has none",
    "dispatch/start.py: Gt -> GtE: "
    "handed = hops(connection, task.id, task.generation) if task.seq > 0 else ()": "without a run nothing is handed on",
    "dispatch/probing.py: the condition is True: "
    "since_ms = hold.until_ms if hold.until_ms is not None else now_ms": "what is over has had an end",
}
"""Mutants that change no decision, as ``module: change``, and why."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. line: of the module as it is; name: module, change and statement, wherever in the module they are."""

    module: str
    line: int
    name: str
    code: CodeType


@dataclass(slots=True)
class Result:
    """What became of the mutants of a module. equal: how many change nothing; late: of those killed, by the clock."""

    module: str
    mutants: int
    equal: int = 0
    killed: int = 0
    late: int = 0
    survivors: int = 0

    def line(self) -> str:
        """As one line of the table."""
        figures = (self.mutants, self.equal, self.killed, self.late, self.survivors)
        return f"{self.module:30}" + "".join(f"{figure:12}" for figure in figures)


_COLUMNS = ("mutants", "equivalent", "killed", "by time", "survivors")
HEADINGS = f"{'module':30}" + "".join(f"{column:>12}" for column in _COLUMNS)


def names(module: str) -> list[str]:
    """What the mutants of a module are called, in their order."""
    text = (ROOT / PACKAGE / module).read_text()
    lines = text.splitlines()
    return [f"{module}: {what}: {lines[line - 1].strip()}" for line, what, _ in _sites(ast.parse(text))]


def mutants(module: str) -> Iterator[Mutant]:
    """All changes to a module."""
    file = ROOT / PACKAGE / module
    text = file.read_text()
    for number, name in enumerate(names(module)):
        tree = ast.parse(text)
        line, _, change = next(site for index, site in enumerate(_sites(tree)) if index == number)
        change()
        # Places are given as they are in the module, so that each function is known by its first line.
        code = compile(ast.fix_missing_locations(tree), str(file), "exec")
        yield Mutant(module, line, name, code)


def control(module: str) -> CodeType:
    """The module with functions that all raise: tests that do not notice this see no change at all."""
    file = ROOT / PACKAGE / module
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            error = ast.Call(ast.Name("AssertionError", ast.Load()), [], [])
            node.body.insert(0, ast.copy_location(ast.Raise(error), node.body[0]))
    return compile(ast.fix_missing_locations(tree), str(file), "exec")


def _sites(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Line, words and the change itself, for each place that can be changed."""
    shown, called = _only_shown(tree), _in_functions(tree)
    tests = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp)}
    arguments = {id(node.value): f"{node.arg}=" for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    for node in ast.walk(tree):
        if id(node) in shown:
            continue
        if isinstance(node, ast.Compare):
            for index, op in enumerate(node.ops):
                if (other := _SWAPS.get(type(op))) is not None:
                    yield node.lineno, _words(op, other), lambda n=node, i=index, o=other: n.ops.__setitem__(i, o())  # type: ignore[misc]
        elif isinstance(node, ast.BoolOp | ast.BinOp) and (other := _SWAPS.get(type(node.op))) is not None:
            yield node.lineno, _words(node.op, other), lambda n=node, o=other: setattr(n, "op", o())  # type: ignore[misc]
        elif isinstance(node, ast.If | ast.IfExp):
            for value in (True, False):
                yield (
                    node.lineno,
                    f"the condition is {value}",
                    lambda n=node, v=value: setattr(n, "test", ast.Constant(v)),  # type: ignore[misc]
                )
        elif isinstance(node, ast.match_case) and node.guard is not None:
            for value in (True, False):
                yield (
                    node.guard.lineno,
                    f"the guard is {value}",
                    lambda n=node, v=value: setattr(n, "guard", ast.Constant(v)),  # type: ignore[misc]
                )
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and id(node) not in tests:
            yield (
                node.lineno,
                "without not",
                lambda n=node: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand)),  # type: ignore[misc]
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool) and id(node) in called:
            argument = arguments.get(id(node), "")
            yield (
                node.lineno,
                f"{argument}{node.value} -> {not node.value}",
                lambda n=node: setattr(n, "value", not n.value),  # type: ignore[misc]
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMES:
            name = _NAMES[node.func.id]
            yield node.lineno, f"{node.func.id} -> {name}", lambda f=node.func, n=name: setattr(f, "id", n)  # type: ignore[misc]
        elif isinstance(node, ast.comprehension):
            for index, test in enumerate(node.ifs):
                yield test.lineno, "no filter", lambda n=node, i=index: n.ifs.__setitem__(i, ast.Constant(True))  # type: ignore[misc]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.lineno, "left out", lambda n=node: setattr(n, "value", ast.Constant(None))  # type: ignore[misc]


def _only_shown(tree: ast.Module) -> set[int]:
    """What makes no difference to a decision: annotations, decorators, texts, log lines, crash points."""
    found: set[int] = set()

    def leave(node: ast.AST) -> None:
        found.update(id(each) for each in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for part in (*node.decorator_list, *(arg.annotation for arg in node.args.args), node.returns):
                if part is not None:
                    leave(part)
        elif isinstance(node, ast.AnnAssign):
            leave(node.annotation)
        elif isinstance(node, ast.JoinedStr):
            leave(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if called.startswith(("log.", "about.", "bound.", "held.", "_log_of(")) or called == "crashpoint":
                leave(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and not node.orelse and id(node.body[-1]) in found:
            shown = all(id(part) in found or isinstance(part, ast.Assign) for part in node.body)
            if shown:  # Only a line of the log depends on it.
                leave(node)
    return found


def _in_functions(tree: ast.Module) -> set[int]:
    """What is evaluated when a function is called, and not when the module is imported."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {id(part) for function in functions for statement in function.body for part in ast.walk(statement)}


def _words(one: ast.AST, other: type[ast.AST]) -> str:
    return f"{type(one).__name__} -> {other.__name__}"


class Tests:
    """The unit tests of one module, in a process that has collected them."""

    def __init__(self, module: str, paths: Sequence[str]) -> None:
        self._paths = paths
        self._file = ROOT / PACKAGE / module
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        self._seconds: dict[str, float] = {}
        self._reached: dict[str, set[_Place]] = {}
        self._whole = compile(self._file.read_text(), str(self._file), "exec")
        with tempfile.NamedTemporaryFile() as told:
            self.passed = _in_child(lambda: self._run(_Watch(str(self._file), Path(told.name)))) == 0
            if self.passed:
                self._seconds, reached = json.loads(Path(told.name).read_text())
                self._reached = {test: {(name, line) for name, line in places} for test, places in reached.items()}
        if self.passed:
            self._collect()

    def output(self) -> str:
        """What pytest printed last."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def run(self, code: CodeType) -> int | None:
        """Run them on the module with that code: 0 if none fails; None: they did not end in time."""
        was, now = _functions(self._whole), _functions(code)
        changed = [place for place in was if was[place] != now.get(place)]
        # What no test has called may be what is called when the module is imported.
        called = any(not places.isdisjoint(changed) for places in self._reached.values())
        if called and _imported(self._whole) == _imported(code) and set(was) == set(now):
            return _in_child(lambda: self._run_with({place: now[place] for place in changed}))
        return _in_child(lambda: self._run_anew(code, changed))

    def _collect(self) -> None:
        kept = os.dup(1), os.dup(2)
        try:
            self._redirect()
            pytest.main([*_OPTIONS, "--collect-only", *self._paths])
        finally:
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)

    def _run_with(self, exchanged: dict[_Place, CodeType]) -> int:
        exchange(str(self._file), exchanged)
        return self._run(self._order(exchanged))

    def _run_anew(self, code: CodeType, changed: Sequence[_Place]) -> int:
        """With something that is done when the module is imported: nothing of the package may be loaded yet."""
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", PACKAGE) and name != __name__]:
            del sys.modules[name]
        name = ".".join((PACKAGE, *self._file.relative_to(ROOT / PACKAGE).with_suffix("").parts))
        sys.meta_path.insert(0, _Exchanged(name, self._file, code))
        return self._run(self._order(changed))

    def _order(self, changed: Iterable[_Place]) -> "_Order":
        """Those first that called what is changed, and of these the ones that took least."""
        reaching = {test for test, places in self._reached.items() if not places.isdisjoint(changed)}
        return _Order({test: (test not in reaching, took) for test, took in self._seconds.items()})

    def _run(self, plugin: object) -> int:
        self._redirect()
        with tempfile.TemporaryDirectory() as folder:
            return int(pytest.main([*_OPTIONS, f"--basetemp={folder}/pytest", *self._paths], plugins=[plugin]))

    def _redirect(self) -> None:
        self._log.truncate(0)
        self._log.seek(0)
        os.dup2(self._log.fileno(), 1)
        os.dup2(self._log.fileno(), 2)


# Few examples: what only the hundredth finds by luck is not held.
settings.register_profile("mutants", deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)
_PROFILE = ["--hypothesis-seed=0", "--hypothesis-profile=mutants"]
# What is imported already is not rewritten, and pytest warns of it.
_IMPORTED = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
_OPTIONS = [
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    f"--timeout={LONGEST_TEST_S}",
    *_PROFILE,
    *_IMPORTED,
]


class _Watch:
    """Writes to a file what each test took, and which functions of the module it called."""

    def __init__(self, module: str, told: Path) -> None:
        self._module = module
        self._told = told
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._reached: dict[str, set[_Place]] = defaultdict(set)
        self._calls: set[_Place] = set()

    def pytest_sessionstart(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._reached[report.nodeid] |= self._calls
        self._calls.clear()

    def pytest_sessionfinish(self) -> None:
        reached = {test: sorted(places) for test, places in self._reached.items()}
        self._told.write_text(json.dumps([self._seconds, reached]))

    def _trace(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if code.co_filename == self._module:
            self._calls.add((code.co_qualname, code.co_firstlineno))


class _Order:
    """The tests in the order of their rank; a new one goes last."""

    def __init__(self, ranks: Mapping[str, tuple[bool, float]]) -> None:
        self._ranks = ranks

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._ranks.get(item.nodeid, (True, math.inf)))


class _Exchanged(MetaPathFinder, InspectLoader):
    """Loads one module from code that is given."""

    def __init__(self, name: str, file: Path, code: CodeType) -> None:
        self._name, self._file, self._code = name, file, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._file, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def get_source(self, fullname: str) -> str:
        return self._file.read_text()


def exchange(file: str, codes: Mapping[_Place, CodeType]) -> None:
    """Give functions of that file another code, by name and first line."""
    gc.unfreeze()  # What the tests' conftest has frozen would not be seen.
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == file:
            place = one.__code__.co_qualname, one.__code__.co_firstlineno
            one.__code__ = codes.get(place, one.__code__)
    gc.freeze()


def _functions(code: CodeType) -> dict[_Place, CodeType]:
    """The functions and methods of a module, by name and first line; what is inside of one belongs to it."""
    found: dict[_Place, CodeType] = {}
    for part in _parts(code):
        if not part.co_flags & CO_OPTIMIZED:
            found |= _functions(part)
        elif not part.co_name.startswith("<"):
            found[part.co_qualname, part.co_firstlineno] = part
    return found


def _imported(code: CodeType) -> list[object]:
    """What is done when a module is imported: its own code, that of its classes, and what these evaluate in passing."""
    found: list[object] = [code.co_code, *(one for one in code.co_consts if not isinstance(one, CodeType))]
    for part in _parts(code):
        if not part.co_flags & CO_OPTIMIZED:
            found += _imported(part)
        elif part.co_name.startswith("<"):
            found.append(part)
    return found


def _parts(code: CodeType) -> Iterator[CodeType]:
    return (one for one in code.co_consts if isinstance(one, CodeType))


def _in_child(work: Callable[[], int], longest_s: float = LONGEST_S) -> int | None:
    """What it returned in a process of its own; None: it was ended, as it took too long."""
    pid = os.fork()
    if not pid:
        os.setpgid(0, 0)
        code = 1
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _examine(module: str, only: Sequence[str], sample: int | None, seed: int) -> int:
    """Print which mutants of a module live; 1 if one does that is not known to change nothing."""
    tests = Tests(module, MODULES[module])
    if not tests.passed:
        print(f"{module}: its tests fail as it is", tests.output(), sep="\n")
        return 1
    if tests.run(control(module)) == 0:
        print(f"{module}: its tests pass although each of its functions raises")
        return 1
    found = [mutant for mutant in mutants(module) if not only or any(words in mutant.name for words in only)]
    if sample is not None and len(found) > sample:
        found = random.Random(seed).sample(found, sample)
    result = Result(module, len(found))
    for mutant in found:
        if mutant.name in EQUIVALENT:
            result.equal += 1
            continue
        status = tests.run(mutant.code)
        if status == 0:
            result.survivors += 1
            print(f"  line {mutant.line} of {mutant.name}", flush=True)
        else:
            result.killed += 1
            result.late += status is None
    print(result.line(), flush=True)
    return 1 if result.survivors else 0


def main() -> int:
    """Print every mutant that lives, and a line for each module. The exit status is 1 if one does that is not known to
    change nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=list(MODULES))
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", action="append", help="mutants whose name has this text (or another, if repeated)")
    chosen = parser.parse_args()
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    # Loaded once for all; the package itself only in the process of each module.
    for library in ("pydantic", "sqlalchemy.orm", "sqlmodel", "structlog", "alembic.command"):
        __import__(library)
    print(HEADINGS, flush=True)
    passed = [
        _in_child(lambda module=module: _examine(module, chosen.only or (), chosen.sample, chosen.seed), math.inf) == 0  # type: ignore[misc]
        for module in chosen.modules
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
