"""The generated pages of the reference say what the code says, and say it of everything."""

from pathlib import Path

import pytest

from claudomator_py.schema.agent_settings import AgentEntry
from claudomator_py.schema.settings import Settings
from docs.reference import api
from docs.reference.generate import PAGES
from docs.reference.schema_words import fields
from tests.fakes.daemon import openapi_document

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "openapi", openapi_document)
    assert (REFERENCE / name).read_text() == PAGES[name](), "run `make reference`"


def test_every_page_of_the_reference_but_those_that_explain_is_generated() -> None:
    assert {path.name for path in REFERENCE.glob("*.md")} == {*PAGES, "glossary.md", "mentions.md"}


def test_every_key_of_the_configuration_says_what_it_means() -> None:
    models = ((Settings, Settings()), (AgentEntry, AgentEntry()))
    dumb = [
        name
        for model, values in models
        for name, part, _ in fields(model.model_json_schema(), values.model_dump(mode="json"))
        if "description" not in part and name not in ("agents", "agents_configured", "reach_configured")
    ]
    assert not dumb
