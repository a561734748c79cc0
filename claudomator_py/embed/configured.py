"""Creation of the configured encoder. Only the one in use is imported."""

from collections.abc import Mapping
from pathlib import Path

from claudomator_py.domain.encoder import Encoder
from claudomator_py.embed.hashed import Hashed
from claudomator_py.schema.routing_settings import EncoderKind, EncoderSettings


def encoder(settings: EncoderSettings, environ: Mapping[str, str]) -> Encoder:
    """Return the encoder for the settings. environ: has the API key. Raises ValueError, with the remedy, if it is not
    installed."""
    match settings.kind:
        case EncoderKind.HASHED:
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
