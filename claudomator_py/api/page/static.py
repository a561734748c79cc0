"""/static: the style sheet and scripts. They are few and small, so they are read once and served from memory."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from claudomator_py.api.operation import guarded

_FOLDER = Path(__file__).parent.parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media_type: str
    digest: str


def url_of(name: str) -> str:
    """The URL of a file, which changes with its content, so that it can be cached forever. Raises KeyError."""
    return f"/static/{name}?v={_ASSETS[name].digest}"


def router() -> APIRouter:
    """The route. Anyone may ask: the page that says how to log in needs them, too."""
    routes = guarded("/static")

    @routes.get("/{name}")
    def file(request: Request, name: str) -> Response:
        asset = _ASSETS.get(name)
        if asset is None:
            raise HTTPException(404)
        current = request.query_params.get("v") == asset.digest
        headers = {"Cache-Control": _FOR_EVER if current else "no-cache"}
        return Response(asset.content, headers=headers, media_type=asset.media_type)

    return routes


def _read(path: Path) -> _Asset:
    content = path.read_bytes()
    return _Asset(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:16])


_ASSETS = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
