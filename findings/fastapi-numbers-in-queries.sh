#!/usr/bin/env bash
# FastAPI 0.165.0 with pydantic 2.14.3 (PyPI): a query parameter that is declared as a whole number, and described in the
# OpenAPI document as {"type": "integer"}, takes texts that are no JSON integer, and that the bounds do not show:
#   1_0 and 1_000 (underscores), 10.0 and 10.00 (a fraction of zeros), "+10" and " 10 " (sign, blanks), 010 (not octal).
# pydantic's table of conversions says of text for a whole number: "Must be numeric only". What it refuses is as hard to
# guess: "1_" and "1__0", digits of other scripts, 1e1 and 0x10.
# Source: https://docs.pydantic.dev/latest/concepts/conversion_table/
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fastapi==0.165.0 pydantic==2.14.3 httpx==0.28.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.testclient import TestClient

app = FastAPI()

@app.get("/items")
def items(limit: Annotated[int, Query(ge=1, le=1000)]) -> int:
    return limit

client = TestClient(app)
print("declared:", app.openapi()["paths"]["/items"]["get"]["parameters"][0]["schema"])
found = {}
for text in ["10", "1_0", "1_000", "10.0", "10.00", "+10", " 10 ", "010", "1_", "1__0", "١٠", "1e1", "0x10", "10.5"]:
    answer = client.get("/items", params={"limit": text})
    found[text] = answer.json() if answer.status_code == 200 else answer.status_code
    print(f"limit={text!r}: {found[text]}")
taken = {"10": 10, "1_0": 10, "1_000": 1000, "10.0": 10, "10.00": 10, "+10": 10, " 10 ": 10, "010": 10}
assert found == taken | dict.fromkeys(["1_", "1__0", "١٠", "1e1", "0x10", "10.5"], 422), "it has changed"
PYTHON
# Seen with Python 3.11, 2026-11:
# declared: {'type': 'integer', 'maximum': 1000, 'minimum': 1, 'title': 'Limit'}
# limit='10': 10
# limit='1_0': 10
# limit='1_000': 1000
# limit='10.0': 10
# limit='10.00': 10
# limit='+10': 10
# limit=' 10 ': 10
# limit='010': 10
# limit='1_': 422
# limit='1__0': 422
# limit='١٠': 422
# limit='1e1': 422
# limit='0x10': 422
# limit='10.5': 422
