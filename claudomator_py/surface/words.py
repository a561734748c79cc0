"""The words below the members of an enumeration, or the fields of a model.

Python keeps no docstrings of these, so they are read from the source, and only where a document is made: pydantic would
read it for every class at every start.
"""

import ast
import inspect
import textwrap
from itertools import pairwise


def member_words(kind: type) -> dict[str, str]:
    """Return each name with the docstring below it, on one line, in Markdown; those without one are left out. For a
    model, also what it inherits, first."""
    words: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        # One that pydantic made of a generic model, such as ``Page[TaskView]``, stands in no source.
        if base.__module__.startswith("claudomator_py") and "[" not in base.__name__:
            words |= _own(base)
    return words


def _own(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    words = {}
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                words[name] = " ".join(text.split()).replace("``", "`")
    return words
