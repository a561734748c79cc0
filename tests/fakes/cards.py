"""Cards of specialists for tests."""

from typing import Any

from claudomator_py.domain.card import Card


def card(specialist_id: str, **fields: Any) -> Card:
    """A card with one skill, unless the fields say otherwise."""
    skill = {"id": f"{specialist_id}-work", "name": f"{specialist_id} work", "examples": [f"do some {specialist_id}"]}
    content = {"id": specialist_id, "description": f"Does what a {specialist_id} does.", "skills": [skill]}
    return Card.model_validate(content | fields)
