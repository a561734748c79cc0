"""The encoder that asks a server with OpenAI's ``/v1/embeddings``, possibly a local one.

Format: https://platform.openai.com/docs/api-reference/embeddings/create
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from claudomator_py.json_http import post_json
from claudomator_py.outgoing import client
from claudomator_py.ports import EncoderFault
from claudomator_py.scheduler.classification import ModelFault

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector

DEFAULT_BASE_URL = "https://api.openai.com/v1"
BATCH_SIZE = 64
"""Texts per request; some servers take no more."""
MAX_LENGTH = 8_000
"""Characters of a text that are sent: they fit into the 8,192 tokens of the public models."""
MAX_DIMENSIONS = 16_384
_MAX_FLOAT32 = 3.4e38
_MAX_BYTES = BATCH_SIZE * MAX_DIMENSIONS * 32


class OpenAi:
    """The encoder. Thread-safe. timeout_s: seconds for one request including retries."""

    immediate = False
    weighs_rarity = False

    def __init__(self, model: str, base_url: str | None, api_key: str | None, timeout_s: float) -> None:
        base = (base_url or DEFAULT_BASE_URL).rstrip("/")
        # The same name may be another model on another server.
        place = hashlib.sha256(base.encode()).hexdigest()[:8]
        self.id = f"openai-{model}-{place}-v1"
        self.dimensions = 0
        self._model = model
        self._url = f"{base}/embeddings"
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout_s = timeout_s
        self._client = client()

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return texts x dimensions. Only the first 8,000 characters count. Raises EncoderFault."""
        import numpy as np

        rows: list[list[float]] = []
        for start in range(0, len(texts), BATCH_SIZE):
            rows += self._asked(texts[start : start + BATCH_SIZE])
        if not rows:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        # The width may change when the server replaces the model; callers then encode their texts again.
        dimensions = {len(row) for row in rows}
        if len(dimensions) > 1:
            raise EncoderFault(f"openai: its vectors have {' and '.join(map(str, sorted(dimensions)))} dimensions")
        self.dimensions = dimensions.pop()
        return np.array(rows, dtype=np.float32)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        # Servers refuse an empty text; a space is equivalent.
        given = [text[:MAX_LENGTH].encode(errors="replace").decode() or " " for text in texts]
        body = {"model": self._model, "input": given, "encoding_format": "float"}
        try:
            answer = post_json(self._client, self._url, body, self._headers, self._timeout_s, most_bytes=_MAX_BYTES)
        except ModelFault as fault:
            raise EncoderFault(f"openai: {fault.detail}") from None
        except RuntimeError:
            raise EncoderFault("openai: it is closed") from None
        return _rows(answer, len(texts))


def _rows(answer: Any, texts: int) -> list[list[float]]:
    """Return the vectors, ordered by their ``index``. Raises EncoderFault."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != texts:
        raise EncoderFault("openai: its answer does not have one vector per text")
    vectors: dict[int, list[float]] = {}
    for item in data:
        index, row = (item.get("index"), item.get("embedding")) if isinstance(item, dict) else (None, None)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < texts or index in vectors:
            raise EncoderFault("openai: its answer does not give a valid index for each vector")
        if not isinstance(row, list) or not 0 < len(row) <= MAX_DIMENSIONS or not all(map(_is_finite, row)):
            raise EncoderFault("openai: its answer has an invalid vector")
        vectors[index] = row
    return [vectors[index] for index in range(texts)]


def _is_finite(value: object) -> bool:
    """Return whether the value is a number that is finite as a 32-bit float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_FLOAT32
