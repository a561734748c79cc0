"""Stand-ins for pydantic, HTTPX and Typer in commands that only show an answer; see ``cli.plainly``.

A shape declared with them reads a field when it is accessed. The daemon has made the answer with the same shapes, so
nothing is validated again. Whatever the libraries would handle in another way raises Beyond.
"""

import json
import socket
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from enum import Enum
from typing import Any, Final
from urllib.parse import urlencode

_UNIONS = (typing.Union, types.UnionType)
_PLAIN = (str, int, bool, float)
_MAX_BYTES: Final = 64 * 2**20


class Beyond(Exception):
    """The libraries themselves are needed."""


class Marker:
    """The arguments with which a field, a parameter or a method was declared."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named

    def default(self) -> Any:
        """Return the field's default. Raises Beyond if it has none."""
        if (make := self.named.get("default_factory")) is not None:
            return make()
        value = self.given[0] if self.given else self.named.get("default", ...)
        if value is ...:
            raise Beyond
        return value


class Before(Marker):
    """A function that is applied to a value before it is read."""


class After(Marker):
    """A function that is applied to a value after it was read."""


class Wrap(Marker):
    """A function that gets the value and the function that reads it."""


class Model:
    """The stand-in for ``pydantic.BaseModel``."""

    model_config: Mapping[str, Any] = {}
    model_fields: Mapping[str, Any] = {}
    """By name, the type hint and the module that it is from."""
    _defaults: Mapping[str, Any] = {}
    _types: Mapping[Any, Any] = {}
    """The type for each type variable."""

    def __class_getitem__(cls, items: Any) -> type:
        variables = cls.__parameters__  # type: ignore[attr-defined]  # set on generic classes
        chosen = dict(zip(variables, items if isinstance(items, tuple) else (items,), strict=True))
        return type(cls.__name__, (cls,), {"_types": chosen, "__module__": cls.__module__})

    def __init_subclass__(cls, **_configuration: Any) -> None:
        super().__init_subclass__()
        fields, defaults = dict(cls.model_fields), dict(cls._defaults)
        for name, hint in cls.__annotations__.items():
            if name.startswith(("_", "model_")) or str(hint).startswith("typing.ClassVar"):
                continue
            fields[name] = (hint, cls.__module__)
            defaults.pop(name, None)
            if name in cls.__dict__:
                defaults[name] = cls.__dict__[name]
                delattr(cls, name)  # otherwise it would hide the answer's value
        cls.model_fields, cls._defaults = fields, defaults

    def __init__(self, **values: Any) -> None:
        if values.keys() - self.model_fields.keys():
            raise Beyond
        self.__dict__.update(values, _said={})

    @classmethod
    def model_validate(cls, document: Any) -> "Model":
        """Return the model for a JSON object."""
        if not isinstance(document, dict):
            raise Beyond
        made = cls.__new__(cls)
        made.__dict__["_said"] = document
        return made

    @classmethod
    def model_validate_json(cls, data: bytes) -> "Model":
        """Return the model for a JSON text."""
        return cls.model_validate(json.loads(data))

    def model_dump(self, *, mode: str, exclude_defaults: bool = False) -> dict[str, Any]:
        """Return an empty object if all values are defaults. Raises Beyond otherwise."""
        if not exclude_defaults or self != type(self)():
            raise Beyond
        return {}

    @classmethod
    def model_rebuild(cls) -> None:
        """Do nothing, as hints are resolved when they are needed."""

    def __getattr__(self, name: str) -> Any:
        if name not in self.model_fields:
            raise AttributeError(name)
        if name in self._said:
            hint, module = self.model_fields[name]
            value = read(hint, self._said[name], module, self._types)
        elif name in self._defaults:
            value = self._defaults[name]
            value = value.default() if isinstance(value, Marker) else value
        else:
            raise Beyond
        self.__dict__[name] = value
        return value

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.model_fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


def read(hint: Any, value: Any, module: str, types: Mapping[Any, Any]) -> Any:
    """Return the value as that type hint, of that module, requires. Raises Beyond, and ValueError as enums do."""
    if isinstance(hint, str | typing.ForwardRef):
        hint = vars(sys.modules[module])[hint if isinstance(hint, str) else hint.__forward_arg__]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)

    def inner(value: Any, kind: Any = arguments[0] if arguments else None) -> Any:
        return read(kind, value, module, types)

    if origin is typing.Annotated:
        through: Callable[[Any], Any] = inner
        for marker in arguments[1:]:
            through = _through(marker, through)
        return through(value)
    if origin in _UNIONS:
        if value is None and type(None) in arguments:
            return None
        kinds = [argument for argument in arguments if argument is not type(None)]
        if len(kinds) == 1:
            return inner(value, kinds[0])
        if set(kinds) <= set(_PLAIN) and type(value) in kinds:
            return value
    elif origin is typing.Literal:
        if value in arguments:
            return value
    elif origin is tuple and arguments[1:] == (...,) and isinstance(value, list):
        return tuple(map(inner, value))
    elif origin is list and isinstance(value, list):
        return [inner(item) for item in value]
    elif origin is dict and isinstance(value, dict):
        return {inner(key): inner(item, arguments[1]) for key, item in value.items()}
    elif isinstance(hint, typing.TypeVar):
        return read(types[hint], value, module, types)
    elif hint in (Any, object):
        return value
    elif hint is float and type(value) in (int, float):
        return float(value)
    elif isinstance(hint, type):
        return _as_class(hint, value)
    raise Beyond


def _as_class(kind: type, value: Any) -> Any:
    if issubclass(kind, Model):
        return kind.model_validate(value)
    if issubclass(kind, Enum):
        return kind(value)
    if kind in _PLAIN and type(value) is kind:
        return value
    raise Beyond


def _through(marker: Any, inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not isinstance(marker, Before | After | Wrap):
        return inner
    function = marker.given[0]
    if isinstance(marker, Wrap):
        return lambda value: function(value, inner)
    return (
        (lambda value: inner(function(value))) if isinstance(marker, Before) else lambda value: function(inner(value))
    )


def _of_pydantic() -> Iterator[types.ModuleType]:
    def described(*_: Any, **__: Any) -> Callable[[Any], Any]:
        return lambda method: method

    methods = dict.fromkeys(("model_validator", "field_validator", "model_serializer"), described)
    validators = {"BeforeValidator": Before, "AfterValidator": After, "WrapValidator": Wrap, "Field": Marker}
    yield _Module(
        "pydantic",
        BaseModel=Model,
        ConfigDict=dict,
        ValidationError=ValueError,
        TypeAdapter=None,
        **methods,
        **validators,
    )
    yield _Module("pydantic_core", PydanticCustomError=Beyond)
    yield _Module("pydantic_core.core_schema", no_info_before_validator_function=None)


class _Module(types.ModuleType):
    """A module of which declarations need only the names."""

    __path__: list[str] = []  # noqa: RUF012 - makes it a package

    def __init__(self, name: str, **known: Any) -> None:
        super().__init__(name)
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        if not name[:1].isupper():
            raise AttributeError(name)
        kind = type(name, (Marker,), {})
        setattr(self, name, kind)
        return kind


class Response:
    """The stand-in for ``httpx.Response``."""

    def __init__(self, head: bytes, content: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.status_code = int(lines[0].split(" ")[1])
        self.is_success = self.status_code // 100 == 2
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.content = content
        if self.headers.get("content-length") != str(len(content)) or not self.is_success:
            raise Beyond


class PlainClient:
    """The stand-in for ``httpx.Client``: sends each request over its own connection to the daemon's Unix socket."""

    def __init__(self, *, headers: Mapping[str, str], timeout: float, transport: Marker | None, **_: Any) -> None:
        if transport is None:
            raise Beyond
        self._path, self._headers, self._timeout = transport.named["uds"], headers, timeout

    def request(self, method: str, path: str, *, extensions: Any, params: Any = None, **more: Any) -> Response:
        """Return the answer. Raises Beyond for anything but a successful GET."""
        if method != "GET" or more:
            raise Beyond
        target = path if not params else f"{path}?{urlencode(params, doseq=True)}"
        head = {"Host": "localhost", **self._headers, "Connection": "close"}
        with closing(socket.socket(socket.AF_UNIX)) as stream:
            stream.settimeout(self._timeout)
            stream.connect(self._path)
            known = types.SimpleNamespace(get_extra_info=lambda _: stream, close=stream.close)
            extensions["trace"]("connection.connect_unix_socket.complete", {"return_value": known})
            lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
            stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
            with stream.makefile("rb") as answer:
                received = answer.read(_MAX_BYTES)
        before, _, content = received.partition(b"\r\n\r\n")
        return Response(before, content)

    def close(self) -> None:
        """Do nothing, as each connection is closed after its answer."""


@contextmanager
def standing_in() -> Iterator[None]:
    """Make imports in the block find the stand-ins. Raises Beyond if one of the libraries is imported already."""
    modules = [
        *_of_pydantic(),
        _Module("httpx", Client=PlainClient),
        _Module("httpx_sse", connect_sse=None),
        _Module("typer", BadParameter=Beyond, Exit=Beyond),
    ]
    if any(module.__name__ in sys.modules for module in modules):
        raise Beyond
    sys.modules.update({module.__name__: module for module in modules})
    try:
        yield
    finally:
        for module in modules:
            del sys.modules[module.__name__]
