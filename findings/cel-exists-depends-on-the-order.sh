#!/usr/bin/env bash
# common-expression-language 0.10.0 (CEL for Python, PyPI): exists() and all() stop at the first element for which the
# condition cannot be evaluated, so whether a rule holds or fails with an error depends on the order of a list.
#
# By the definition of the language, exists() combines its elements with `||` and all() with `&&`: one element that
# decides makes errors of the others disappear, wherever it stands. This library does that for the operators themselves,
# in both orders, and so a rule that was tried with `||` is not the same with exists(). Here a run says what it cost and
# another does not. Guard each field inside: runs.exists(r, has(r.cost) && r.cost > 3).
# Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md, "Macros" and "Logical Operators".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check common-expression-language==0.10.0 2>/dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import cel


def value(text, runs):
    try:
        return cel.compile(text).execute(cel.Context({"runs": runs}))
    except Exception as error:
        return type(error).__name__


orders = [[{"agent": "a", "cost": 5}, {"agent": "b"}], [{"agent": "b"}, {"agent": "a", "cost": 5}]]
rules = {
    "runs[0].cost > 3 || runs[1].cost > 3": [True, True],
    "runs.exists(r, r.cost > 3)": [True, "KeyError"],
    "runs[0].cost > 9 && runs[1].cost > 9": [False, False],
    "runs.all(r, r.cost > 9)": [False, "KeyError"],
    "runs.exists(r, has(r.cost) && r.cost > 3)": [True, True],
}
for rule, expected in rules.items():
    values = [value(rule, runs) for runs in orders]
    print(f"{rule}: with the cost first {values[0]}, last {values[1]}")
    assert values == expected, "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-11:
# runs[0].cost > 3 || runs[1].cost > 3: with the cost first True, last True
# runs.exists(r, r.cost > 3): with the cost first True, last KeyError
# runs[0].cost > 9 && runs[1].cost > 9: with the cost first False, last False
# runs.all(r, r.cost > 9): with the cost first False, last KeyError
# runs.exists(r, has(r.cost) && r.cost > 3): with the cost first True, last True
