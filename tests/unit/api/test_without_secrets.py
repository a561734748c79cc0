"""The last look at an answer: secrets are gone from whatever it is, and it is still what it says it is."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from claudomator_py.api.guard.without_secrets import UNFILTERED, WithoutSecrets
from claudomator_py.domain.redaction import MARK, Redactor

SECRET = 'geheim"<9f2c>'
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEow\\"


def asked(answer: Response, method: str = "GET", *, given: bool = False) -> httpx.Response:
    """What is received of an application that always answers so. given: as to whoever is given a new secret."""

    def always(request: Request) -> Response:
        setattr(request.state, UNFILTERED, given)
        return answer

    app = Starlette(routes=[Route("/", always)])
    app.add_middleware(WithoutSecrets, redactor=lambda: Redactor([SECRET]))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://daemon") as client:
            return await client.request(method, "/")

    return asyncio.run(ask())


@pytest.mark.parametrize("media_type", ["application/json", "application/problem+json"])
@pytest.mark.parametrize("text", [f"it is {SECRET}", PEM + '"} and on'])
def test_json_stays_json(media_type: str, text: str) -> None:
    document: dict[str, Any] = {"a": [text, 1.5, None], "state": "COMPLETED", "ü": True}
    response = asked(JSONResponse(document, media_type=media_type))
    assert response.headers["content-length"] == str(len(response.content))
    assert MARK in response.json()["a"][0]
    assert {**response.json(), "a": None} == {**document, "a": None}


def test_a_value_is_found_as_a_page_writes_it() -> None:
    response = asked(HTMLResponse("<p>geheim&#34;&lt;9f2c&gt;</p>"))
    assert (response.text, response.headers["content-length"]) == (f"<p>{MARK}</p>", str(len(response.content)))


def test_events_are_cleaned_one_by_one_and_keep_their_lines() -> None:
    data = [{"text": f"{SECRET}\u2028\x85", "n": n} for n in (1, 2)]
    events = [f"id: {each['n']}\nevent: state\ndata: {json.dumps(each)}\n\n".encode() for each in data]
    response = asked(StreamingResponse(iter(events), media_type="text/event-stream"))
    lines = response.text.splitlines()
    assert [line for line in lines if line.startswith("id:")] == ["id: 1", "id: 2"]
    messages = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data:")]
    assert messages == [{"text": f"{MARK}\u2028\x85", "n": n} for n in (1, 2)]


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (Response(SECRET.encode(), media_type="application/octet-stream"), False),
        (JSONResponse({"token": SECRET}), True),
        (PlainTextResponse("nothing in it"), False),
    ],
)
def test_bytes_of_a_log_and_what_is_given_out_stay_as_they_are(answer: Response, given: bool) -> None:
    response = asked(answer, given=given)
    assert response.content == answer.body
    assert asked(answer, "HEAD", given=given).headers["content-length"] == str(len(answer.body))
