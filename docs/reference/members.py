"""What the lines below the members of an enumeration, or the fields of a model, say of them."""

import ast
import inspect
import textwrap
from itertools import pairwise


def members(kind: type) -> dict[str, str]:
    """Each name with the docstring below it, on one line, in Markdown; those without one are left out. For a model,
    also what it inherits, first."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("claudomator_py"):
            found |= _own(one)
    return found


def _own(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found = {}
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split()).replace("``", "`")
    return found
