#!/usr/bin/env bash
# common-expression-language 0.10.0 (CEL for Python, PyPI) departs from CEL's language definition in three ways that
# no error tells of:
#   1. size(string) counts UTF-8 bytes. The definition: "the string length", in Unicode code points.
#   2. getHours(), getDate() and the like tell what the text of the timestamp says, in its own offset. The definition:
#      "get hours from the date in UTC"; and with a time zone as argument, which is no function here.
#   3. Context.add_function("size", ...) is accepted and has no effect: a built-in function cannot be replaced.
# Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md, "List of Standard Definitions".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check common-expression-language==0.10.0
"$folder/venv/bin/python" - <<'PYTHON'
import cel

def value(text, context=None):
    return cel.compile(text).execute(context or cel.Context({}))

written = 'timestamp("2026-11-27T23:00:00-08:00")'
found = {
    'size("äöü"), 3 by the definition': value('size("äöü")'),
    'size("日本"), 2 by the definition': value('size("日本")'),
    f"{written}.getHours(), 7 by the definition": value(f"{written}.getHours()"),
    f"{written}.getDate(), 28 by the definition": value(f"{written}.getDate()"),
}
try:
    found["getHours with a time zone"] = value(f'{written}.getHours("UTC")')
except RuntimeError as error:
    found["getHours with a time zone"] = str(error).split(".")[0]
context = cel.Context({})
context.add_function("size", len)
context.add_function("characters", len)
found["size after add_function, 3 if it were replaced"] = value('size("äöü")', context)
found["the same function by another name"] = value('characters("äöü")', context)
for name, one in found.items():
    print(f"{name}: {one}")
assert list(found.values()) == [6, 6, 23, 27, "Undefined variable or function: 'getHours'", 6, 3], "it has changed"
PYTHON
# Seen with Python 3.11, 2026-11:
# size("äöü"), 3 by the definition: 6
# size("日本"), 2 by the definition: 6
# timestamp("2026-11-27T23:00:00-08:00").getHours(), 7 by the definition: 23
# timestamp("2026-11-27T23:00:00-08:00").getDate(), 28 by the definition: 27
# getHours with a time zone: Undefined variable or function: 'getHours'
# size after add_function, 3 if it were replaced: 6
# the same function by another name: 3
