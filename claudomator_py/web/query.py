"""Query parameters, read strictly: one that is not known, or is there twice, is refused instead of left out.

What a misspelt filter would list is not what was asked for. The OpenAPI document says what each operation takes.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import islice

from fastapi import Request

from claudomator_py.core.errors import Invalid
from claudomator_py.core.problem import Problem, shown, suggestion

_MOST = 20


def strict_query(request: Request) -> None:
    """A dependency of every route of the API. Raises Invalid."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    if not given:
        return
    known = _known(request)
    if known is None:
        return
    problems: list[Problem] = []
    for name, count in islice(given.items(), _MOST):
        if name not in known:
            remedy = suggestion(name, known) if known else "leave it out: this operation takes none"
            problems.append(Problem(field=shown(name), message="is not a parameter of this operation", remedy=remedy))
        elif count > 1 and not known[name]:
            problems.append(Problem(field=name, message=f"is there {count} times", remedy="send it once"))
    if problems:
        detail = "; ".join(problem.render() for problem in problems[:3])
        raise Invalid(detail, remedy="Correct the query.", problems=problems)


def _known(request: Request) -> Mapping[str, bool] | None:
    """The operation's parameters, each with whether it may be repeated; None for what is no operation of the API."""
    path = request.scope["route"].path
    operation = request.app.openapi()["paths"].get(path, {}).get(request.method.lower())
    if operation is None:
        return None
    parameters = operation.get("parameters", ())
    return {one["name"]: _is_list(one["schema"]) for one in parameters if one["in"] == "query"}


def _is_list(schema: Mapping[str, object]) -> bool:
    forms = schema.get("anyOf", [schema])
    assert isinstance(forms, list)  # noqa: S101 - JSON Schema
    return any(form.get("type") == "array" for form in forms)
