#!/usr/bin/env bash
# JsonOutputParser of langchain-core 1.8.3 beside json_repair 0.64.6 (PyPI): the verdict of a reviewing model whose
# answer has JSON twice, first the form that it repeats or its first thought, and then what it says.
#
#                                                      JsonOutputParser      json_repair.loads
#   two blocks of ```json: true, false                 true                  false
#   a block of ```json: true, then false without one   true                  false
#   true, a sentence ("Wait, ..."), false              true                  false
#   a sentence, true, a sentence, false                an error              false
#
# One takes the first JSON and passes over the rest, the other takes what came last for a key that it has seen, and
# neither says that there were two. So the review of one answer approves in one program and refuses in another, and a
# model that thinks aloud, and changes its mind, has approved. A test whose answer is JSON alone passes with both. Have
# a program refuse an answer in which the key of the verdict occurs twice, or ask for it by a tool.
# Source: https://reference.langchain.com/python/langchain-core/output_parsers/json/JsonOutputParser,
# https://github.com/mangiucugna/json_repair
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain-core==1.8.3 json_repair==0.64.6 2>/dev/null
cd "$folder"
env -i PATH="$PATH" HOME="$folder" timeout 100 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import json_repair
from langchain_core.output_parsers import JsonOutputParser

YES, NO = '{"approved": true}', '{"approved": false}'
ANSWERS = {
    "two blocks": f"The form is\n```json\n{YES}\n```\nMy answer:\n```json\n{NO}\n```",
    "a block, then none": f"The form is\n```json\n{YES}\n```\nMy answer: {NO}",
    "a change of mind": f"{YES}\nWait, the test of the log fails.\n{NO}",
    "sentences around": f"If the tests passed, I would answer {YES}.\nThey fail, so:\n{NO}",
}


def verdict(parse, answer):
    try:
        return parse(answer)["approved"]
    except ValueError:
        return "an error"


print("langchain-core", version("langchain-core"), "and json_repair", version("json_repair"))
seen = []
for name, answer in ANSWERS.items():
    seen.append((verdict(JsonOutputParser().parse, answer), verdict(json_repair.loads, answer)))
    print(f"{name}: {seen[-1][0]} and {seen[-1][1]}")
assert seen == [(True, False), (True, False), (True, False), ("an error", False)], "it has changed"
PYTHON
# Seen with Python 3.11, twice, 2026-12:
# langchain-core 1.8.3 and json_repair 0.64.6
# two blocks: True and False
# a block, then none: True and False
# a change of mind: True and False
# sentences around: an error and False
