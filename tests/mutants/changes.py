"""All small changes to a module, each as code of its own."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CodeType

from tests.mutants import PACKAGE, ROOT

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
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
}
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add}
_NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. line: of the module as it is; name: module, change and statement, wherever in the module they are."""

    module: str
    line: int
    name: str
    code: CodeType


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
        if isinstance(node, _Function):
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
                if (opposite := _COMPARISONS.get(type(op))) is not None:
                    yield node.lineno, _words(op, opposite), partial(node.ops.__setitem__, index, opposite())
        elif isinstance(node, ast.BoolOp | ast.BinOp) and (other := _OPERATORS.get(type(node.op))) is not None:
            yield node.lineno, _words(node.op, other), partial(setattr, node, "op", other())
        elif isinstance(node, ast.If | ast.IfExp):
            for value in (True, False):
                yield node.lineno, f"the condition is {value}", partial(setattr, node, "test", ast.Constant(value))
        elif isinstance(node, ast.match_case) and node.guard is not None:
            for value in (True, False):
                yield node.guard.lineno, f"the guard is {value}", partial(setattr, node, "guard", ast.Constant(value))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and id(node) not in tests:
            negated = ast.UnaryOp(ast.Not(), node.operand)
            yield node.lineno, "without not", partial(setattr, node, "operand", negated)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool) and id(node) in called:
            words = f"{arguments.get(id(node), '')}{node.value} -> {not node.value}"
            yield node.lineno, words, partial(setattr, node, "value", not node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMES:
            name = _NAMES[node.func.id]
            yield node.lineno, f"{node.func.id} -> {name}", partial(setattr, node.func, "id", name)
        elif isinstance(node, ast.comprehension):
            for index, test in enumerate(node.ifs):
                yield test.lineno, "no filter", partial(node.ifs.__setitem__, index, ast.Constant(True))
        elif isinstance(node, ast.Expr) and _called(node.value) is not None:
            yield node.lineno, "left out", partial(setattr, node, "value", ast.Constant(None))


def _only_shown(tree: ast.Module) -> set[int]:
    """What makes no difference to a decision: annotations, decorators, texts, log lines, crash points."""
    results: set[int] = set()

    def leave(node: ast.AST) -> None:
        results.update(id(each) for each in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, _Function):
            for part in (*node.decorator_list, *(arg.annotation for arg in node.args.args), node.returns):
                if part is not None:
                    leave(part)
        elif isinstance(node, ast.AnnAssign):
            leave(node.annotation)
        elif isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            leave(node)
        elif isinstance(node, ast.Expr) and (call := _called(node.value)) is not None:
            called = ast.unparse(call.func)
            if called.startswith(("log.", "about.", "bound.", "held.", "_log_of(")) or called in (
                "crashpoint",
                "crash",
            ):
                leave(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and not node.orelse and id(node.body[-1]) in results:
            shown = all(id(part) in results or isinstance(part, ast.Assign) for part in node.body)
            if shown:  # Only a line of the log depends on it.
                leave(node)
    return results


def _in_functions(tree: ast.Module) -> set[int]:
    """What is evaluated when a function is called, and not when the module is imported."""
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    return {id(part) for function in functions for statement in function.body for part in ast.walk(statement)}


def _called(value: ast.expr) -> ast.Call | None:
    """The call, awaited or not; None: it is no call."""
    call = value.value if isinstance(value, ast.Await) else value
    return call if isinstance(call, ast.Call) else None


def _words(name: ast.AST, other: type[ast.AST]) -> str:
    return f"{type(name).__name__} -> {other.__name__}"
