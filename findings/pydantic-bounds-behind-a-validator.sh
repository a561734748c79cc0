#!/usr/bin/env bash
# pydantic 2.14.3: where bounds stand behind a BeforeValidator in Annotated, they are enforced, but model_json_schema()
# publishes them as "ge" and "le", which are no keywords of JSON Schema: whoever reads the schema knows of no bounds, and
# so it is in the OpenAPI document of FastAPI for Annotated[int, validator, Query(ge=1, le=5)]. The same bounds before the
# validator, or in the default of the field, are published as "minimum" and "maximum".
# Source: https://json-schema.org/draft/2020-12/json-schema-validation, section 6.2 (minimum, maximum).
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pydantic==2.14.3
"$folder/venv/bin/python" - <<'PYTHON'
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

checked = BeforeValidator(lambda value: value)


class Bounded(BaseModel):
    behind: Annotated[int, checked, Field(ge=1, le=5)] = 3
    before: Annotated[int, Field(ge=1, le=5), checked] = 3
    in_the_default: Annotated[int, checked] = Field(3, ge=1, le=5)


found = {
    name: sorted(schema.keys() & {"ge", "le", "minimum", "maximum"})
    for name, schema in Bounded.model_json_schema()["properties"].items()
}
for name, keywords in found.items():
    print(f"{name}: {keywords}")
    try:
        Bounded(**{name: 6})
    except ValidationError as error:
        print(f"{name}, given 6: {error.errors()[0]['type']}")
assert found == {
    "behind": ["ge", "le"],
    "before": ["maximum", "minimum"],
    "in_the_default": ["maximum", "minimum"],
}, "it has changed"
PYTHON
# Seen with Python 3.11, 2026-11:
# behind: ['ge', 'le']
# behind, given 6: less_than_equal
# before: ['maximum', 'minimum']
# before, given 6: less_than_equal
# in_the_default: ['maximum', 'minimum']
# in_the_default, given 6: less_than_equal
