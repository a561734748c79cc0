#!/usr/bin/env bash
# PyYAML 6.0.3 and ruamel.yaml 0.19.1 (PyPI) beside js-yaml 5.5.0 and yaml 2.9.1 (npm): the same bytes have other keys.
#
# U+2028 and U+2029 end a line in YAML 1.1, and do not in YAML 1.2, where they are characters like any other. Editors
# show them as a blank or as nothing, and they come along when text is copied from web pages and notes. So what YAML 1.2
# reads as the rest of a comment, or of a text under `|`, is the next line to PyYAML, which may be a key of its own; by
# the loaders of npm the file has no such key. None of them warns; ruamel.yaml refuses three of the files. In double
# quotes all keep the character, but those of Python drop the blanks around it, so that a JSON document, whose texts may
# hold one, changes when it is read as YAML.
# Source: https://yaml.org/spec/1.2.2/ext/changes/ ("no longer considered line-break characters").
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyyaml==6.0.3 ruamel.yaml==0.19.1 2>/dev/null
(cd "$folder" && npm install --silent --no-fund --no-audit js-yaml@5.5.0 yaml@2.9.1 >/dev/null)
cat >"$folder/read.js" <<'JS'
const [jsYaml, yaml] = [require("js-yaml"), require("yaml")];
for (const text of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  for (const [name, load] of [["js-yaml", jsYaml.load], ["yaml", yaml.parse]]) {
    let value;
    try { value = load(text); } catch (error) { value = "refused"; }
    console.log(JSON.stringify([name, value]));
  }
}
JS
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json, subprocess, sys

import yaml
from ruamel.yaml import YAML

folder = sys.argv[1]
texts = [
    "colour: red # as agreed\u2028size: large\n",
    "task: |\n  Fix the page\u2028size: large\n",
    "colour: red\u2029size: large\n",
    'text: "one \u2028 two"\n',
]
loaders = {"PyYAML": yaml.safe_load, "PyYAML, libyaml": lambda text: yaml.load(text, yaml.CSafeLoader)}
loaders["ruamel.yaml"] = lambda text: dict(YAML(typ="safe", pure=True).load(text))


def value(load, text):
    try:
        return load(text)
    except Exception:
        return "refused"


read = subprocess.run(["node", f"{folder}/read.js"], input=json.dumps(texts), stdout=-1, text=True, check=True)
lines = [json.loads(line) for line in read.stdout.split("\n") if line]
seen = []
for number, text in enumerate(texts):
    values = {name: value(load, text) for name, load in loaders.items()} | dict(lines[2 * number : 2 * number + 2])
    seen.append(list(values.values()))
    print(ascii(text))
    for name, loaded in values.items():
        print(f"  {name}: {ascii(loaded)}")
key, no = {"size": "large"}, "refused"
assert seen == [
    [{"colour": "red"} | key] * 2 + [no] + [{"colour": "red"}] * 2,
    [{"task": "Fix the page\u2028"} | key] * 2 + [no] + [{"task": "Fix the page\u2028size: large\n"}] * 2,
    [{"colour": "red"} | key] * 2 + [no] * 3,
    [{"text": "one\u2028two"}] * 3 + [{"text": "one \u2028 two"}] * 2,
], "it has changed"
PYTHON
# Seen with Python 3.11 and Node 20, twice, 2026-11:
# 'colour: red # as agreed\u2028size: large\n'
#   PyYAML: {'colour': 'red', 'size': 'large'}
#   PyYAML, libyaml: {'colour': 'red', 'size': 'large'}
#   ruamel.yaml: 'refused'
#   js-yaml: {'colour': 'red'}
#   yaml: {'colour': 'red'}
# 'task: |\n  Fix the page\u2028size: large\n'
#   PyYAML: {'task': 'Fix the page\u2028', 'size': 'large'}
#   js-yaml: {'task': 'Fix the page\u2028size: large\n'}
# 'text: "one \u2028 two"\n'
#   PyYAML: {'text': 'one\u2028two'}
#   js-yaml: {'text': 'one \u2028 two'}
