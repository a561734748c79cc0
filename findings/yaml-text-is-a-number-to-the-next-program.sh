#!/usr/bin/env bash
# What one library writes as YAML, another reads: PyYAML 6.0.4 and ruamel.yaml 0.19.1 (PyPI), js-yaml 5.5.0 and yaml
# 2.9.1 (npm). The value is a text each time, and each library reads its own file back as that text. None of them warns.
#
#   the text   what it is  written by              read as
#   84e1234    a commit    PyYAML, js-yaml         infinity by ruamel.yaml and yaml
#   3e5        a commit    PyYAML                  300000 by the other three
#   08         a month     PyYAML                  8 by the other three
#   12:30      a time      ruamel.yaml, yaml       750 by PyYAML
#   no         an answer   ruamel.yaml, yaml       False by PyYAML
#   2026-12-01 a date      yaml                    a date by PyYAML and ruamel.yaml
#   1_000      a name      yaml                    1000 by PyYAML and ruamel.yaml
#
# Every writer puts quotes around what it would itself misread. PyYAML knows YAML 1.1, where a float needs a point and a
# sign in its exponent; the others know YAML 1.2, where 3e5 is a float, and "no" and 12:30 are plain text. ruamel.yaml
# is for files that people keep: loading and dumping one with `at: "12:30"` takes away the quotes that were there for
# PyYAML. Only js-yaml writes with both in mind, but not for exponents beyond the range, which yaml and ruamel.yaml read
# as infinity. Of commits that are abbreviated to seven digits, one in fifty has this form. Have quotes written around
# all texts that another program is to read: default_style='"' of the two of Python, preserve_quotes of ruamel.yaml for
# texts that have them already, and defaultStringType of yaml.
# Source: https://yaml.org/spec/1.2.2/ext/changes/, https://yaml.org/type/float.html
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyyaml==6.0.4 ruamel.yaml==0.19.1 2>/dev/null
npm install --silent --no-audit --no-fund --prefix "$folder" js-yaml@5.5.0 yaml@2.9.1 >/dev/null
cat >"$folder/both.mjs" <<'JS'
import { readFileSync } from "node:fs";
import * as js from "js-yaml";
import * as yaml from "yaml";
const [task, items] = JSON.parse(readFileSync(0, "utf8"));
const told = (value) => (Object.is(value, Infinity) ? "infinity" : value);
const one = (item) => task === "write"
  ? [js.dump({ key: item }), yaml.stringify({ key: item })]
  : [told(js.load(item).key), told(yaml.parse(item).key)];
console.log(JSON.stringify(items.map(one)));
JS
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import datetime, io, json, math, subprocess, sys

import yaml
from ruamel.yaml import YAML

NAMES = ["PyYAML", "ruamel.yaml", "js-yaml", "yaml"]
TEXTS = ["84e1234", "3e5", "08", "12:30", "no", "2026-12-01", "1_000"]


def node(task, items):
    command = ["node", f"{sys.argv[1]}/both.mjs"]
    return json.loads(subprocess.run(command, input=json.dumps([task, items]), stdout=-1, text=True, check=True).stdout)


def ruamel(value, **settings):
    writer, file = YAML(), io.StringIO()
    vars(writer).update(settings)
    writer.dump(value, file)
    return file.getvalue()


def told(value):
    if isinstance(value, datetime.date):
        return "a date"
    return "infinity" if isinstance(value, float) and math.isinf(value) else value


def read(text):
    of_python = [yaml.safe_load(text)["key"], YAML(typ="safe", pure=True).load(text)["key"]]
    return [told(value) for value in of_python] + node("read", [text])[0]


seen = {}
for text, of_node in zip(TEXTS, node("write", TEXTS)):
    files = [yaml.safe_dump({"key": text}), ruamel({"key": text}), *of_node]
    for writer, file in zip(NAMES, files):
        others = {reader: value for reader, value in zip(NAMES, read(file)) if value != text}
        if others:
            seen[text, writer] = others
            print(f"{file.strip()}, written by {writer} for the text {text!r}: {others}")
infinity = {"ruamel.yaml": "infinity", "yaml": "infinity"}
assert seen == {
    ("84e1234", "PyYAML"): infinity,
    ("84e1234", "js-yaml"): infinity,
    ("3e5", "PyYAML"): dict.fromkeys(NAMES[1:], 300000),
    ("08", "PyYAML"): dict.fromkeys(NAMES[1:], 8),
    **{("12:30", writer): {"PyYAML": 750} for writer in ("ruamel.yaml", "yaml")},
    **{("no", writer): {"PyYAML": False} for writer in ("ruamel.yaml", "yaml")},
    ("2026-12-01", "yaml"): dict.fromkeys(NAMES[:2], "a date"),
    ("1_000", "yaml"): dict.fromkeys(NAMES[:2], 1000),
}, "it has changed"
again = ruamel(YAML().load('at: "12:30"\n'))
kept = YAML()
kept.preserve_quotes = True
file = io.StringIO()
kept.dump(kept.load('at: "12:30"\n'), file)
print("12:30 in quotes, loaded and dumped by ruamel.yaml:", again.strip())
print("the same with preserve_quotes:", file.getvalue().strip())
assert (again, file.getvalue()) == ("at: 12:30\n", 'at: "12:30"\n'), "it has changed"
PYTHON
# Seen with Python 3.11 and Node 20, twice, 2026-12:
# key: 84e1234, written by PyYAML for the text '84e1234': {'ruamel.yaml': 'infinity', 'yaml': 'infinity'}
# key: 84e1234, written by js-yaml for the text '84e1234': {'ruamel.yaml': 'infinity', 'yaml': 'infinity'}
# key: 3e5, written by PyYAML for the text '3e5': {'ruamel.yaml': 300000.0, 'js-yaml': 300000, 'yaml': 300000}
# key: 12:30, written by yaml for the text '12:30': {'PyYAML': 750}
# 12:30 in quotes, loaded and dumped by ruamel.yaml: at: 12:30
# the same with preserve_quotes: at: "12:30"
