"""A model of sentences as a program of its own: texts come on standard input, vectors go to standard output.

Started by ``embed.model_process``, so that some hundred megabytes and the threads of the linear algebra are not the
daemon's, and a crash is nobody's but its own. It ends with its input, and after a time without questions.

A frame is its length in 4 bytes, the most significant first, and its content. A question is JSON: a list of texts. An
answer begins with a byte: 0, and a row of 32-bit floats for each text follows; 1, and the words of a fault follow.
"""

import json
import select
import struct
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from claudomator_py.domain.vectors import Vector

TOKENS: Final = 128
"""Of a text that count: the first; sentence models are trained on about as many."""
IDLE_S: Final = 600.0
"""Seconds without a question after which it ends."""
LENGTH: Final = struct.Struct(">I")
_SIDE_BY_SIDE = 32
"""Texts of equal length that are computed at once."""


class Model(Protocol):
    """Makes vectors of tokens."""

    def rows(self, ids: "Vector") -> "Vector":
        """Return a row of length 1 for each text. ids: of their tokens, of equally many in each."""


class Texts:
    """Makes vectors of texts. folder: has ``tokenizer.json``. Raises OSError, ValueError for one without it."""

    def __init__(self, folder: Path, model: Model) -> None:
        from tokenizers import Tokenizer

        self._model = model
        # Read here, as the library says of a missing file only that something went wrong.
        self._tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self._tokenizer.no_padding()  # without a mask, padding would be part of the mean
        self._tokenizer.enable_truncation(TOKENS)

    def encode(self, texts: Sequence[str]) -> bytes:
        """Return a row for each text."""
        import numpy as np

        found: list[Any] = [None] * len(texts)
        by_length: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        for place, text in enumerate(texts):
            ids = self._tokenizer.encode(text).ids or [0]  # some tokenizers find nothing in a blank text
            by_length[len(ids)].append((place, ids))
        for alike in by_length.values():
            for start in range(0, len(alike), _SIDE_BY_SIDE):
                some = alike[start : start + _SIDE_BY_SIDE]
                rows = self._model.rows(np.array([ids for _, ids in some], dtype=np.int64))
                for (place, _), row in zip(some, rows, strict=True):
                    found[place] = row
        return np.stack(found).astype(np.float32).tobytes() if found else b""


def _minilm(folder: Path) -> Model:
    from claudomator_py.embed.minilm_model import MiniLmModel

    return MiniLmModel(folder)


def _onnx(folder: Path) -> Model:
    from claudomator_py.embed.onnx_model import OnnxModel

    return OnnxModel(folder)


_MODELS: Final[dict[str, Callable[[Path], Model]]] = {"minilm": _minilm, "onnx": _onnx}


def _answer(texts: Texts, question: bytes) -> bytes:
    try:
        return b"\0" + texts.encode(json.loads(question))
    except Exception as error:  # whatever it is, the next text may well be fine
        return _fault(error)


def _fault(error: Exception) -> bytes:
    return b"\1" + f"{type(error).__name__}: {error}".encode(errors="replace")


def main(kind: str, folder: str) -> None:
    """Answer, until there is nobody any more who asks. A model that cannot be loaded is told with the first answer."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    texts: Texts | Exception
    try:
        texts = Texts(Path(folder), _MODELS[kind](Path(folder)))
    except Exception as error:
        texts = error
    while select.select([stdin.fileno()], [], [], IDLE_S)[0]:
        # It asks again only when it has the answer, so nothing waits in a buffer that `select` does not see.
        length = stdin.read(LENGTH.size)
        if len(length) < LENGTH.size:
            return
        question = stdin.read(LENGTH.unpack(length)[0])
        answer = _fault(texts) if isinstance(texts, Exception) else _answer(texts, question)
        stdout.write(LENGTH.pack(len(answer)) + answer)
        stdout.flush()
        if isinstance(texts, Exception):
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
