"""The model all-MiniLM-L6-v2, computed with numpy.

Wang et al. 2020, "MiniLM: Deep Self-Attention Distillation"; an encoder as in Devlin et al. 2019, "BERT".
"""

import json
import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector

_LAYERS, _HEADS = 6, 12
_TINY: Final = 1e-12


class MiniLmModel:
    """The model, loaded from a folder. Raises OSError, ValueError or KeyError if that is not the model's."""

    def __init__(self, folder: Path) -> None:
        self._weights = _tensors(folder / "model.safetensors")

    def rows(self, ids: "Vector") -> "Vector":
        """Return texts x 384: the normalised mean of the last layer's tokens. ids: texts x tokens."""
        import numpy as np

        weights = self._weights
        words = weights["embeddings.word_embeddings.weight"][ids]
        places = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        state = words + places + weights["embeddings.token_type_embeddings.weight"][0]
        state = self._normed(state, "embeddings.LayerNorm")
        for number in range(_LAYERS):
            layer = f"encoder.layer.{number}"
            attended = state + self._attended(state, f"{layer}.attention")
            state = self._normed(attended, f"{layer}.attention.output.LayerNorm")
            inner = _gelu(self._linear(state, f"{layer}.intermediate.dense"))
            state = self._normed(state + self._linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        mean = state.mean(axis=1)
        rows: Vector = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), _TINY)
        return rows

    def _attended(self, state: "Vector", name: str) -> "Vector":
        import numpy as np

        texts, tokens, width = state.shape
        size = width // _HEADS

        def heads(part: str) -> "Vector":
            rows = self._linear(state, f"{name}.self.{part}").reshape(texts, tokens, _HEADS, size)
            heads: Vector = rows.transpose(0, 2, 1, 3)
            return heads

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(size**0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ heads("value")
        return self._linear(mixed.transpose(0, 2, 1, 3).reshape(texts, tokens, width), f"{name}.output.dense")

    def _linear(self, rows: "Vector", name: str) -> "Vector":
        product: Vector = rows @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product

    def _normed(self, rows: "Vector", name: str) -> "Vector":
        import numpy as np

        centred = rows - rows.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(_TINY))
        scaled: Vector = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return scaled


def _gelu(rows: "Vector") -> "Vector":
    """``x * Phi(x)`` (Hendrycks and Gimpel 2016); the error function to 1.5e-7 as in Abramowitz and Stegun 7.1.26."""
    import numpy as np

    magnitude = np.abs(rows) * np.float32(0.5**0.5)
    near = 1 / (1 + np.float32(0.3275911) * magnitude)
    series = np.full_like(near, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series * near + coefficient).astype(np.float32)
    erf = 1 - series * near * np.exp(-magnitude * magnitude)
    activated: Vector = 0.5 * rows * (1 + np.copysign(erf, rows))
    return activated


def _tensors(file: Path) -> "dict[str, Vector]":
    """Map the tensors of a safetensors file (https://huggingface.co/docs/safetensors): 8 bytes with the length of the
    header, the header as JSON, and the data. Raises OSError, ValueError, KeyError."""
    import numpy as np

    with file.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__" or tensor["dtype"] != "F32":
            continue
        start, end = tensor["data_offsets"]
        values = np.frombuffer(data, dtype="<f4", count=(end - start) // 4, offset=8 + size + start)
        tensors[name] = values.reshape(tensor["shape"])
    return tensors
