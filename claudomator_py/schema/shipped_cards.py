"""The cards that come with Claudomator: a YAML file for each in the folder ``specialists`` of the package."""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from claudomator_py.domain.card import Card

_FOLDER: Final = "specialists"
_SUFFIX: Final = ".yaml"


def shipped_files() -> dict[str, bytes]:
    """Return what the files say, by their names without the suffix, in order. Raises OSError if the package is
    damaged."""
    found = (one for one in files("claudomator_py").joinpath(_FOLDER).iterdir() if one.name.endswith(_SUFFIX))
    return {one.name.removesuffix(_SUFFIX): one.read_bytes() for one in sorted(found, key=lambda one: one.name)}


def files_hash(contents: Mapping[str, bytes]) -> str:
    """Return SHA-256 of all of them, by which a daemon knows that it has these cards already."""
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def shipped_cards(contents: Mapping[str, bytes]) -> list[Card]:
    """Return the cards of those files. Raises ValueError for one that is not valid."""
    import yaml  # a daemon that has these cards already has no use for it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # reads the same, ten times as fast, where it was built
    return [Card.model_validate(yaml.load(content, loader)) for content in contents.values()]  # noqa: S506 - both safe
