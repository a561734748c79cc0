"""The encoder as the configuration wants it. Only the one that is used is imported."""

from claudomator_py.embed.hashed import Hashed
from claudomator_py.ports import Encoder
from claudomator_py.schema.routing_settings import EncoderKind, EncoderSettings


def encoder(settings: EncoderSettings) -> Encoder:
    """Raises ValueError, with the remedy, for one that there is not."""
    if settings.kind is EncoderKind.HASHED:
        return Hashed()
    raise ValueError(f"routing.encoder.kind: `{settings.kind}` is not supported yet; write hashed")
