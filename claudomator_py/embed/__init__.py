"""Encoders: from texts to vectors, by which routing compares them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claudomator_py.ports import Encoder
    from claudomator_py.schema.routing_settings import EncoderSettings


def encoder(settings: "EncoderSettings", environ: Mapping[str, str]) -> "Encoder":
    """Return the encoder for the settings. environ: has the API key. Raises ValueError, with the remedy, if it is not
    installed."""
    # Imported late, as the process of a model imports this package, and is to be small.
    from claudomator_py.schema.routing_settings import EncoderKind

    match settings.kind:
        case EncoderKind.HASHED:
            from claudomator_py.embed.hashed import Hashed

            return Hashed()
        case EncoderKind.MINILM:
            from claudomator_py.embed.bundled import minilm, weights

            return minilm(weights())
        case EncoderKind.ONNX:
            from claudomator_py.embed.bundled import onnx

            return onnx(Path(settings.folder or ""))
        case EncoderKind.OPENAI:
            from claudomator_py.embed.openai import OpenAi

            key = environ.get(settings.key_variable or "")
            return OpenAi(settings.model_name or "", settings.base_url, key, settings.timeout / 1000)
