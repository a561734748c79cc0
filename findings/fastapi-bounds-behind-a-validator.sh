#!/usr/bin/env bash
# FastAPI 0.165.0 with pydantic 2.14.3: where a BeforeValidator stands before Query in Annotated, the bounds of Query are
# enforced, but the OpenAPI document publishes them as "ge" and "le", which are no keywords of JSON Schema. Clients and
# generators made from that document know of no bounds. With the validator behind Query they are published as "minimum"
# and "maximum", as everybody expects; so they are for the same annotation in a field of a pydantic model.
# Source: https://json-schema.org/draft/2020-12/json-schema-validation, section 6.2 (minimum, maximum).
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fastapi==0.165.0 pydantic==2.14.3
"$folder/venv/bin/python" - <<'PYTHON'
from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel, BeforeValidator, Field

app = FastAPI()
checked = BeforeValidator(lambda value: value)


@app.get("/before")
def before(limit: Annotated[int, checked, Query(ge=1, le=5)] = 3) -> int:
    return limit


@app.get("/behind")
def behind(limit: Annotated[int, Query(ge=1, le=5), checked] = 3) -> int:
    return limit


class Model(BaseModel):
    limit: Annotated[int, checked, Field(ge=1, le=5)] = 3


def keywords(schema: dict) -> list[str]:
    return sorted(schema.keys() & {"ge", "le", "minimum", "maximum"})


paths = app.openapi()["paths"]
found = {path: keywords(paths[path]["get"]["parameters"][0]["schema"]) for path in ("/before", "/behind")}
found["a model"] = keywords(Model.model_json_schema()["properties"]["limit"])
for name, one in found.items():
    print(f"{name}: {one}")
assert found == {
    "/before": ["ge", "le"],
    "/behind": ["maximum", "minimum"],
    "a model": ["maximum", "minimum"],
}, "it has changed"
PYTHON
# Seen with Python 3.11, 2026-11:
# /before: ['ge', 'le']
# /behind: ['maximum', 'minimum']
# a model: ['maximum', 'minimum']
