"""The JSON-RPC methods that connected agents may call: parameters, execution and errors."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claudomator_py.api.guard.pace import Pace
from claudomator_py.api.guard.roles import OPERATIONS, may, not_permitted
from claudomator_py.api.streams import Streams
from claudomator_py.domain.card import Card
from claudomator_py.domain.errors import ErrorStatus, ServiceError, problems_text
from claudomator_py.domain.fields import Name
from claudomator_py.domain.principal import Principal, RequestKey
from claudomator_py.protocols.hub import Hub
from claudomator_py.protocols.hub.assignment import AgentConnection, HubPeer
from claudomator_py.resources.session import Session
from claudomator_py.resources.specialists.service import HubRegistration, Specialists
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.schema.a2a_card import is_a2a, is_written_for_a2a, read_a2a, unread_keys
from claudomator_py.schema.taskfile import parse_task
from claudomator_py.schema.validation import MAX_PROBLEMS, first_problem, validate
from claudomator_py.store.database import StoreUnavailable
from claudomator_py.texts import json_hash

MAX_BYTES: Final = 1024 * 1024
"""Size of a frame. Beyond it the connection is closed with 1009."""

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NOT_PERMITTED, NOT_FOUND, CONFLICT, UNAVAILABLE = -32001, -32004, -32009, -32050
_MAX_PARAMS: Final = 100
_CODES: Final[Mapping[ErrorStatus, int]] = {
    "not_found": NOT_FOUND,
    "not_permitted": NOT_PERMITTED,
    "conflict": CONFLICT,
    "unavailable": UNAVAILABLE,
}
"""Error codes by the status of a service's error; any other status means INVALID_PARAMS."""


class HubError(Exception):
    """A JSON-RPC error response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def document(self) -> dict[str, Any]:
        """The JSON-RPC error object."""
        return {"code": self.code, "message": str(self)}


class _Params(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_Id = Annotated[str, Field(min_length=1, max_length=200)]
_Text = Annotated[str, Field(max_length=MAX_BYTES)]


class _Register(_Params):
    agent_id: Name
    instance_id: _Id
    card: dict[str, Any]
    max_concurrent: Annotated[int, Field(ge=1, le=1_000)] = 1
    resume: Annotated[list[_Id], Field(max_length=1_000)] = Field(default_factory=list)


class _Search(_Params):
    query: Annotated[str, Field(min_length=1, max_length=1_000)]
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class _Submit(_Params):
    name: _Id
    instructions: _Text
    specialist: str | None = None
    skill: str | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class _ProgressParams(_Params):
    assignment_id: _Id
    seq: Annotated[int, Field(ge=0, lt=2**53)] = 0
    text: Annotated[str, Field(max_length=100_000)] = ""
    percent: Annotated[float, Field(ge=0, le=100)] | None = None


class _RunResult(_Params):
    assignment_id: _Id
    status: Annotated[str, Field(pattern="^(succeeded|failed)$")]
    text: _Text = ""
    reason: Annotated[str, Field(max_length=200)] | None = None


class Methods:
    """The methods on one connection, for its principal ``by``. Used on the loop."""

    __slots__ = ("_by", "_granted", "_hub", "_link", "_pace", "_peer", "_registered", "_streams")

    def __init__(
        self,
        hub: Hub,
        granted: Session,
        streams: Streams,
        by: Principal,
        peer: HubPeer,
        registered: Callable[[str], None],
        pace: Pace | None,
    ) -> None:
        """registered: called with the id of each new card. pace: the account that calls are charged to."""
        self._hub = hub
        self._granted = granted
        self._streams = streams
        self._by = by
        self._peer = peer
        self._registered = registered
        self._pace = pace
        self._link: AgentConnection | None = None

    @property
    def has_registered(self) -> bool:
        """Whether an agent has registered on the connection."""
        return self._link is not None

    def leave(self) -> None:
        """Unregister the agent, because the connection has ended or its token is invalid. Idempotent."""
        if self._link is not None:
            self._hub.leave(self._link)

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the method's result. Raises HubError."""
        match method:
            case "agent.register":
                return await self._register(_checked(_Register, params))
            case "agent.search":
                return await self._search(_checked(_Search, params))
            case "task.submit":
                return await self._submit(_checked(_Submit, params))
            case "task.progress":
                await self._progress(_checked(_ProgressParams, params))
                return {}
            case "task.result":
                return await self._result(_checked(_RunResult, params))
            case "ping":
                return {}
        raise HubError(NO_METHOD, f"there is no method {method[:60]!r}")

    async def _register(self, asked: _Register) -> dict[str, Any]:
        self._permit("registerSpecialist")
        if self._link is not None and self._link.agent_id != asked.agent_id:
            raise HubError(CONFLICT, f"this connection is {self._link.agent_id}; open another one")
        # The agent's address and capacity follow from the connection, not from the card.
        document = {"url": f"ws-agent://{asked.agent_id}", "id": asked.agent_id, "max_concurrent": asked.max_concurrent}
        unmet = [key for key in ("url", "id") if asked.card.get(key, document[key]) != document[key]]
        for_a2a = is_written_for_a2a(asked.card)
        if unmet and not for_a2a:
            raise HubError(INVALID_PARAMS, f"card.{unmet[0]}: is not {document[unmet[0]]}; leave it out")

        def register() -> HubRegistration:
            card = validate(
                Card, _own_fields({**asked.card, **document} if for_a2a else asked.card) | document, {}, ("card",)
            )
            if isinstance(card, list):
                raise HubError(INVALID_PARAMS, problems_text(card[:MAX_PROBLEMS]))
            return self._granted[Specialists].register_itself(card)

        # In a worker thread, and charged: validating a large card with many errors is expensive.
        registered = await self._run(register)
        if registered.is_new:
            self._registered(asked.agent_id)
        if self._link is None:
            self._link = AgentConnection(asked.agent_id, asked.instance_id, asked.max_concurrent, self._peer)
        self._link.instance_id, self._link.most = asked.instance_id, asked.max_concurrent
        resumed = await self._hub.join(self._link, asked.resume)
        ignored = sorted({*unmet, *(unread_keys(asked.card) if is_a2a(asked.card) else ()), *registered.ignored})
        return {"agent_id": asked.agent_id, "resumed": resumed, **({"ignored": ignored} if ignored else {})}

    async def _search(self, asked: _Search) -> dict[str, Any]:
        own = None if self._link is None else self._link.agent_id
        result = await self._run(lambda: self._granted[Specialists].search(asked.query, asked.limit + 1))
        others = [item for item in result.items if item.specialist.id != own]
        agents = [
            {
                "name": other.specialist.id,
                "description": other.specialist.content.description,
                "skills": [{"id": skill.id, "name": skill.name} for skill in other.specialist.content.skills],
                "score": other.score,
                "best_skill_id": other.best_skill_id,
            }
            for other in others[: asked.limit]
        ]
        return {"agents": agents, "total": result.total - (len(others) < len(result.items))}

    async def _submit(self, asked: _Submit) -> dict[str, Any]:
        self._permit("submitTask")
        document = asked.model_dump(exclude_none=True, exclude={"idempotency_key"})
        spec = parse_task(document)
        if isinstance(spec, list):
            raise HubError(INVALID_PARAMS, problems_text(spec[:MAX_PROBLEMS]))
        key = None if asked.idempotency_key is None else _key(asked.idempotency_key, document)
        task = await self._run(lambda: self._granted[Tasks].submit(spec, key=key))
        return {"task_id": task.id, "state": task.state}

    async def _progress(self, asked: _ProgressParams) -> None:
        fields = asked.model_dump(exclude={"assignment_id"}, exclude_none=True)
        if self._link is not None:
            await self._hub.progress(self._link.agent_id, asked.assignment_id, fields)

    async def _result(self, asked: _RunResult) -> dict[str, Any]:
        if self._link is None:
            raise HubError(CONFLICT, "register first")
        end: dict[str, Any] = {"type": "end", "outcome": "completed" if asked.status == "succeeded" else "failed"}
        end |= {key: value for key, value in (("text", asked.text), ("reason", asked.reason)) if value}
        try:
            duplicate = await self._hub.result(self._link, asked.assignment_id, end)
        except ServiceError as error:
            raise _refusal(error) from error
        except (StoreUnavailable, OSError) as error:
            raise HubError(UNAVAILABLE, "it could not be recorded; send it again") from error
        return {"recorded": True, "duplicate": duplicate}

    def _permit(self, operation: str) -> None:
        if not may(self._by, operation):
            raise HubError(NOT_PERMITTED, str(not_permitted(self._by, OPERATIONS[operation])))

    async def _run(self, call: Callable[[], Any]) -> Any:
        """Run a call of a service in a worker thread and charge it. Raises HubError."""
        try:
            if self._pace is None:
                return await self._streams.run(call)
            return await self._pace.served(call, self._streams.run)
        except ServiceError as error:
            raise _refusal(error) from error


def _own_fields(card: dict[str, Any]) -> dict[str, Any]:
    """Return the card in our format. An A2A card may contain our keys as well. Raises HubError."""
    if not is_a2a(card):
        return card
    read = read_a2a(card)
    if isinstance(read, list):
        raise HubError(INVALID_PARAMS, problems_text(read[:MAX_PROBLEMS]))
    return read.document


def _key(name: str, document: Mapping[str, Any]) -> RequestKey:
    """Return the key with a prefix that keeps it apart from the API's idempotency keys."""
    return RequestKey(f"hub:{name}", json_hash(document))


def _checked(shape: type[Any], params: Mapping[str, Any]) -> Any:
    """Return the validated parameters. Raises HubError."""
    if len(params) > _MAX_PARAMS:
        raise HubError(INVALID_PARAMS, f"there are {len(params)} parameters, more than any method takes")
    try:
        return shape.model_validate(params)
    except ValidationError as error:
        problem = first_problem(shape, error)
        raise HubError(
            INVALID_PARAMS, problem.model_copy(update={"field": problem.field or "params"}).render()
        ) from None


def _refusal(error: ServiceError) -> HubError:
    return HubError(_CODES.get(error.status, INVALID_PARAMS), f"{error.detail} {error.remedy}".strip())
