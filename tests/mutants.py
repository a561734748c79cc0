"""Changes to the deciding modules, one at a time, that some unit test of the module has to notice: ``make mutants``.

A mutant is a copy of the tree in which one small thing of one module is wrong: a comparison at its boundary, ``and``
for ``or``, a guard that never holds, a call that is left out. The module's own unit tests are run against it, and only
these: what falls to an end-to-end test alone lives here. The tree itself is never touched.

    python -m tests.mutants                      # every module of MODULES
    python -m tests.mutants scheduler/plan.py    # only this one
    python -m tests.mutants --sample 40          # at most so many of each, chosen evenly
"""

import argparse
import ast
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "claudomator_py"
LONGEST_S = 120
"""Seconds for the tests of one mutant: one that never ends is noticed too."""

_SCHEDULER = "tests/unit/scheduler"
_DISPATCH = "tests/unit/dispatch"
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
    "dispatch/probing.py": [f"{_DISPATCH}/test_limits.py"],
    "dispatch/start.py": [f"{_DISPATCH}/test_starting.py", f"{_DISPATCH}/test_item_faults.py"],
    "dispatch/collect.py": [f"{_DISPATCH}/test_ends.py", f"{_DISPATCH}/test_checks.py", f"{_DISPATCH}/test_limits.py"],
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


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. line: of the module as it is; what: the change in words, beside the statement that it is in."""

    module: str
    line: int
    what: str
    source: str


def mutants(module: str) -> Iterator[Mutant]:
    """All changes to a module, in the order of its lines."""
    text = (ROOT / PACKAGE / module).read_text()
    lines = text.splitlines()
    count = sum(1 for _ in _sites(ast.parse(text)))
    for number in range(count):
        tree = ast.parse(text)
        line, what, change = next(site for index, site in enumerate(_sites(tree)) if index == number)
        change()
        yield Mutant(module, line, f"{what}: {lines[line - 1].strip()}", ast.unparse(ast.fix_missing_locations(tree)))


def _sites(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Line, words and the change itself, for each place that can be changed."""
    shown = _only_shown(tree)
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
            if called.startswith(("log.", "about.")) or called == "crashpoint":
                leave(node)
    return found


def _words(one: ast.AST, other: type[ast.AST]) -> str:
    return f"{type(one).__name__} -> {other.__name__}"


def lives(mutant: Mutant, tree: Path, tests: list[str]) -> bool:
    """Whether the tests pass against it. tree: a copy in which the module is exchanged, and put back."""
    file = tree / PACKAGE / mutant.module
    kept = file.read_text()
    file.write_text(mutant.source)
    try:
        return _passes(tree, tests)
    finally:
        file.write_text(kept)


def _passes(tree: Path, tests: list[str]) -> bool:
    pid = os.fork()
    if not pid:
        _run(tree, tests)
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def _run(tree: Path, tests: list[str]) -> None:
    """In a child with the libraries loaded already, but nothing of the package: the tests of one mutant."""
    os.setpgid(0, 0)
    log = os.open(f"{tree}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(tree)
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", PACKAGE)]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    import pytest

    code = 1
    try:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--hypothesis-seed=0"]
        code = int(pytest.main([*options, f"--basetemp={tree}/.pytest", *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> int:
    """Print every mutant that lives. The exit status is 1 if one does that is not known to make no difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=list(MODULES))
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    chosen = parser.parse_args()
    for library in ("pydantic", "pytest", "sqlalchemy.orm", "sqlmodel", "structlog", "alembic.command"):
        __import__(library)
    living = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "build", ".*_cache", ".hypothesis")
        shutil.copytree(ROOT, tree, ignore=ignored)
        for module in chosen.modules:
            tests = MODULES[module]
            if not _passes(tree, tests):
                print(f"{module}: its tests fail as it is", Path(f"{tree}.log").read_text(), sep="\n")
                return 2
            found = list(mutants(module))
            if chosen.sample and len(found) > chosen.sample:
                found = [found[index * len(found) // chosen.sample] for index in range(chosen.sample)]
            alive = [mutant for mutant in found if lives(mutant, tree, tests)]
            living += len(alive)
            print(f"{module}: {len(found)} mutants, {len(alive)} live", flush=True)
            for mutant in alive:
                print(f"  {module}:{mutant.line}: {mutant.what}", flush=True)
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
