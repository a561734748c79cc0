"""A folder with the smallest sentence model there is: an ONNX graph that looks a vector up for each token.

The file is written field by field (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), as the library that does
so is large.
"""

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from claudomator_py.embed.model_process import weights
from claudomator_py.routing.space import Vector

WORDS, WIDTH = 30_522, 16
"""Of the tokenizer's vocabulary; and of a vector."""
TABLE: Vector = np.random.default_rng(5).standard_normal((WORDS, WIDTH), dtype=np.float32)
_INT64, _FLOAT = 7, 1
_BOTH = ("input_ids", "attention_mask")


def model_folder(folder: Path, *, inputs: Sequence[str] = _BOTH, nodes: Sequence[bytes] = ()) -> Path:
    """The folder, with the model in it. inputs: that the graph wants. nodes: what follows the look-up, ending in
    ``out``; none: that gives a vector for each token."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(weights() / "tokenizer.json", folder / "tokenizer.json")
    looked_up = node("Gather", ["table", "input_ids"], "looked" if nodes else "out")
    table = _number(1, WORDS) + _number(1, WIDTH) + _number(2, _FLOAT) + _text(8, "table") + _bytes(9, TABLE.tobytes())
    graph = b"".join(_bytes(1, entry) for entry in (looked_up, *nodes)) + _text(2, "g") + _bytes(5, table)
    graph += b"".join(_bytes(11, _value(name, _INT64, 2)) for name in inputs)
    graph += _bytes(12, _value("out", _FLOAT, 2 if nodes else 3))
    model = _number(1, 8) + _bytes(7, graph) + _bytes(8, _text(1, "") + _number(2, 17))
    (folder / "model.onnx").write_bytes(model)
    return folder


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]) -> bytes:
    """One operation of a graph."""
    text = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, kind)
    for name, value in attributes.items():
        entry = isinstance(value, int)
        numbers = _number(3, value) if isinstance(value, int) else b"".join(_number(8, each) for each in value)
        text += _bytes(5, _text(1, name) + numbers + _number(20, 2 if entry else 7))
    return text


def _value(name: str, kind: int, dimensions: int) -> bytes:
    shape = b"".join(_bytes(1, _text(2, f"{name}-{place}")) for place in range(dimensions))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _varint(value: int) -> bytes:
    result = b""
    while value > 127:
        result += struct.pack("B", value & 127 | 128)
        value >>= 7
    return result + struct.pack("B", value)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())
