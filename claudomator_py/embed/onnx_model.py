"""A sentence model as an ONNX graph, computed with onnxruntime."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from claudomator_py.routing.space import Vector

_PLACES: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
POOLING: Final = "1_Pooling/config.json"
_FEEDS: Final = ("input_ids", "attention_mask", "token_type_ids")
_TINY: Final = 1e-12


def graph_of(folder: Path) -> Path:
    """Return the graph's file where sentence-transformers puts it. Raises ValueError if there is none."""
    for place in _PLACES:
        if (folder / place).is_file():
            return folder / place
    raise ValueError(f"{folder} has none of {', '.join(_PLACES)}")


class OnnxModel:
    """The model, loaded from a folder. Raises ValueError for unknown inputs or pooling, and what onnxruntime raises if
    it cannot load the graph."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # leave the other processors to the agents
        self._session: Any = onnxruntime.InferenceSession(
            str(graph_of(folder)), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        if unknown := sorted(set(self._inputs) - set(_FEEDS)):
            raise ValueError(f"the graph wants {', '.join(unknown)}, and only {', '.join(_FEEDS)} are known")
        self._of_first = _pooled_by_first(folder)

    def rows(self, ids: "Vector") -> "Vector":
        """Return texts x dimensions, rows of length 1. ids: texts x tokens. A graph that returns vectors of tokens is
        pooled by their mean or by the first token, as the model was trained."""
        import numpy as np

        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (output, *_) = self._session.run(None, {name: feeds[name] for name in self._inputs})
        if output.ndim == 3:
            output = output[:, 0] if self._of_first else output.mean(axis=1)
        if output.ndim != 2 or len(output) != len(ids):
            raise ValueError(f"the graph gives an array of shape {output.shape} for {len(ids)} texts")
        rows: Vector = (output / np.maximum(np.linalg.norm(output, axis=1, keepdims=True), _TINY)).astype(np.float32)
        return rows


def _pooled_by_first(folder: Path) -> bool:
    """Return whether the model pools by its first token instead of the mean. Raises ValueError for other pooling."""
    try:
        pooling = json.loads((folder / POOLING).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    ways = sorted(name for name, on in pooling.items() if name.startswith("pooling_mode") and on is True)
    if ways not in (["pooling_mode_mean_tokens"], ["pooling_mode_cls_token"]):
        raise ValueError(f"{POOLING} wants {', '.join(ways) or 'nothing'}; only the mean and the first token are known")
    return ways == ["pooling_mode_cls_token"]
