"""A sentence model as a program: reads texts from standard input, writes vectors to standard output.

``embed.model_process`` starts it, which keeps some hundred megabytes, threads of linear algebra and crashes out of the
daemon. It ends at the end of its input, or when it has been idle for a while.

A frame is its length in 4 bytes, big-endian, followed by its content. A question is a JSON list of texts. An answer is
the byte 0 and a row of 32-bit floats for each text, or the byte 1 and an error message.
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
    from claudomator_py.routing.space import Vector

TOKENS: Final = 128
"""Tokens of a text that are encoded; sentence models are trained on about as many."""
IDLE_S: Final = 600.0
"""Seconds without a question after which the program ends."""
LENGTH: Final = struct.Struct(">I")
_SIDE_BY_SIDE = 32
"""Texts of equal length in one batch."""


class EncoderModel(Protocol):
    """A model that turns tokens into vectors."""

    def rows(self, ids: "Vector") -> "Vector":
        """Return texts x dimensions, rows of length 1. ids: texts x tokens."""


class Texts:
    """Turns texts into vectors. folder: has ``tokenizer.json``. Raises OSError or ValueError if it has not."""

    def __init__(self, folder: Path, model: EncoderModel) -> None:
        from tokenizers import Tokenizer

        self._model = model
        # Read here, because the library's error for a missing file does not name it.
        self._tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self._tokenizer.no_padding()  # without an attention mask, padding would distort the mean
        self._tokenizer.enable_truncation(TOKENS)

    def encode(self, texts: Sequence[str]) -> bytes:
        """Return the rows of the texts as bytes."""
        import numpy as np

        vectors: list[Any] = [None] * len(texts)
        by_length: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        for place, text in enumerate(texts):
            ids = self._tokenizer.encode(text).ids or [0]  # some tokenizers return no tokens for a blank text
            by_length[len(ids)].append((place, ids))
        for alike in by_length.values():
            for start in range(0, len(alike), _SIDE_BY_SIDE):
                some = alike[start : start + _SIDE_BY_SIDE]
                rows = self._model.rows(np.array([ids for _, ids in some], dtype=np.int64))
                for (place, _), row in zip(some, rows, strict=True):
                    vectors[place] = row
        return np.stack(vectors).astype(np.float32).tobytes() if vectors else b""


def _minilm(folder: Path) -> EncoderModel:
    from claudomator_py.embed.minilm_model import MiniLmModel

    return MiniLmModel(folder)


def _onnx(folder: Path) -> EncoderModel:
    from claudomator_py.embed.onnx_model import OnnxModel

    return OnnxModel(folder)


_MODELS: Final[dict[str, Callable[[Path], EncoderModel]]] = {"minilm": _minilm, "onnx": _onnx}


def _answer(texts: Texts, question: bytes) -> bytes:
    try:
        return b"\0" + texts.encode(json.loads(question))
    except Exception as error:  # the next question may succeed
        return _fault(error)


def _fault(error: Exception) -> bytes:
    return b"\1" + f"{type(error).__name__}: {error}".encode(errors="replace")


def main(kind: str, folder: str) -> None:
    """Answer questions until the input ends. If the model cannot be loaded, the first answer is the error."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    texts: Texts | Exception
    try:
        texts = Texts(Path(folder), _MODELS[kind](Path(folder)))
    except Exception as error:
        texts = error
    while select.select([stdin.fileno()], [], [], IDLE_S)[0]:
        # The client asks only after an answer, so no question can sit in a buffer where `select` does not see it.
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
