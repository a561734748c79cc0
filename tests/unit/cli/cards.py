"""What a test says of cards to the command line."""

import json

from tests.fakes.command import Command

PLUMBER = """\
id: plumber
name: Pipe Doctor
description: Fixes leaking pipes.
system_prompt: |
  You fix pipes.
  You touch nothing else.
skills:
- id: leaks
  name: Leaks
  description: Finds what drips.
"""


def told(command: Command, *arguments: str) -> list[dict[str, object]]:
    results: list[dict[str, object]] = json.loads(command(*arguments, "-o", "json").stdout)
    return results


def named(name: str, url: str) -> dict[str, object]:
    """An A2A card of 0.3 as other programs write it: without its version."""
    return {
        "name": name,
        "description": "Speaks.",
        "url": url,
        "version": "1",
        "capabilities": {},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
    }
