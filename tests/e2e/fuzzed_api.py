"""Requests that nobody would think of, which Schemathesis makes of the API's own OpenAPI document.

Imported by the fixture that needs it: it takes a third of a second, in each worker.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import requests
import schemathesis
from hypothesis import given, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.internal.intervalsets import IntervalSet
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import Case, GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import converter
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema

from tests.e2e.daemon import Daemon
from tests.fakes.daemon import openapi_document

# Any refusal will do, such as 413 for what is too long and 414 for what is too long in a path.
CONFIG = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}})
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@dataclass(frozen=True)
class FuzzedApi:
    """A daemon, and what it says of itself. session: keeps its connection, and reads no settings of the environment."""

    daemon: Daemon
    url: str
    schema: OpenApiSchema
    session: requests.Session
    headers: dict[str, str]

    @classmethod
    def of(cls, daemon: Daemon, url: str, token: str) -> "FuzzedApi":
        """That one, asked with that token."""
        headers = {"Authorization": f"Bearer {token}"}
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=headers, config=CONFIG)
        session = requests.Session()
        session.trust_env = False
        return cls(daemon, url, schema, session, headers)

    def keeps_to_the_document(self, operation_id: str, chosen: settings) -> None:
        """Send right requests and wrong ones, and check the answers."""
        operation = self.schema.find_operation_by_id(operation_id)
        self._each(operation_id, GenerationMode.POSITIVE, chosen, self._check)
        # What takes nothing cannot be given anything wrong.
        if operation.definition.raw.get("parameters") or operation.body:
            self._each(operation_id, GenerationMode.NEGATIVE, chosen, self._check)

    def each_right_request(self, operation_id: str, chosen: settings, use: Callable[[Case[Any]], None]) -> None:
        """Hand requests on that the document permits."""
        self._each(operation_id, GenerationMode.POSITIVE, chosen, use)

    def follow_links(self, chosen: settings) -> None:
        """Go from answer to request, along the links."""
        api = self

        class Walk(self.schema.as_state_machine()):  # type: ignore[misc]  # made at run time from the document
            def before_call(self, case: Case[Any]) -> None:
                _defuse(case)

            def get_call_kwargs(self, case: Case[Any]) -> dict[str, Any]:
                return {"headers": api.headers, "session": api.session}

            def validate_response(self, response: Any, case: Case[Any], **_: Any) -> None:
                case.validate_response(response, checks=CHECKS, headers=api.headers)

        run_state_machine_as_test(Walk, settings=chosen)

    def _each(
        self, operation_id: str, mode: GenerationMode, chosen: settings, use: Callable[[Case[Any]], None]
    ) -> None:
        operation = self.schema.find_operation_by_id(operation_id)

        @chosen
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Case[Any]) -> None:
            _defuse(case)
            use(case)

        with patch.object(HypothesisProvider, "draw_string", _draw_string):
            send()

    def _check(self, case: Case[Any]) -> None:
        checks = [check for check in CHECKS if check is not negative_data_rejection or not _is_text_in_a_query(case)]
        case.call_and_validate(session=self.session, headers=self.headers, checks=checks)


# It makes one pattern of a pattern and a length, so of texts that are wrong it sends none that is too long and none of
# spaces alone. To compile one that counts to a million takes a third of the CPU of all these tests.
setattr(converter, "update_quantifier", lambda pattern, *_: pattern)  # noqa: B010 - what the module has imported

_draw_each_character = HypothesisProvider.draw_string
_MAX_DRAWN = 20


def _draw_string(self: HypothesisProvider, intervals: IntervalSet, *, min_size: int = 0, max_size: int = 10**10) -> str:
    """A text that must be long repeats a short one: most are too long on purpose, by a limit of a hundred and more.

    To draw each of their characters takes a fifth of the CPU of all these tests.
    """
    if min_size <= _MAX_DRAWN:
        return _draw_each_character(self, intervals, min_size=min_size, max_size=max_size)
    part = _draw_each_character(self, intervals, min_size=1, max_size=_MAX_DRAWN)
    return (part * min_size)[:min_size]


def _is_text_in_a_query(case: Case[Any]) -> bool:
    """Whether a parameter of the query is wrong as JSON only: ``?text=-5.7e133`` is text like any other, of several the
    last one counts, and what is empty is not sent, whatever its name."""
    parameters = openapi_document()["paths"][case.path][case.method.lower()].get("parameters", ())
    kinds = {
        parameter["name"]: {kind.get("type") for kind in parameter["schema"].get("anyOf", [parameter["schema"]])}
        for parameter in parameters
        if parameter["in"] == "query"
    }
    given = (case.query or {}).items()
    return any(
        _is_empty(value) or (not isinstance(value, str) and "string" in kinds.get(name, ())) for name, value in given
    )


def _is_empty(value: object) -> bool:
    """Whether it is left out of a query: nothing, or a list of nothing."""
    return value in (None, {}) or (isinstance(value, list) and all(map(_is_empty, value)))


def _defuse(case: Case[Any]) -> None:
    """Leave out the one thing that a task may have executed."""
    if isinstance(case.body, dict):
        case.body.pop("check", None)
