"""Cards as text to edit: what ``schema.cardfile`` reads."""

from collections.abc import Mapping
from typing import Any


def text_of(document: Mapping[str, Any]) -> str:
    """The card as YAML, with texts of several lines as they are."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """With a representer of its own."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
