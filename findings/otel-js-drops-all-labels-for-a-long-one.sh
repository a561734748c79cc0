#!/usr/bin/env bash
# @opentelemetry/resources 2.12.1 (npm) beside opentelemetry-sdk 1.45.2 (PyPI): one value of more than 255 characters in
# OTEL_RESOURCE_ATTRIBUTES, and the SDK for JavaScript has none of the attributes that the variable lists.
#
# The variable is how a runner labels the telemetry of the agents that it starts: team, task, repository, title. By the
# specification, attributes of a resource should be exempt even from the limits on length that can be set. This SDK
# refuses the whole variable for one value, service.name included, and says so at level DEBUG of a logger that is off.
# The SDK for Python keeps all of it. What counts is the decoded value, in UTF-16 units: 128 emoji are 256. A limit by
# OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT changes nothing, and of the names only OTEL_SERVICE_NAME survives. So an agent in
# JavaScript reports a task with a long title as if it were nobody's. Cut such values before they go into the variable.
# Source: https://opentelemetry.io/docs/specs/otel/common/#attribute-limits,
# https://opentelemetry.io/docs/specs/otel/resource/sdk/#specifying-resource-information-via-an-environment-variable.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check opentelemetry-sdk==1.45.2 2>/dev/null
npm install --silent --no-audit --no-fund @opentelemetry/api@1.9.1 @opentelemetry/resources@2.12.1 >/dev/null
cat >of.cjs <<'NODE'
const { defaultResource, detectResources, envDetector } = require("@opentelemetry/resources");
const { attributes } = defaultResource().merge(detectResources({ detectors: [envDetector] }));
console.log(JSON.stringify([attributes["service.name"], attributes.team ?? null, (attributes.title ?? "").length]));
NODE
cat >of.py <<'PYTHON'
import json
from opentelemetry.sdk.resources import Resource

found = Resource.create().attributes
length = len(found.get("title", "").encode("utf-16-le")) // 2
print(json.dumps([found["service.name"], found.get("team"), length], separators=(",", ":")))
PYTHON
label() { # what it is, the title, further variables: service.name, team, and the length of the title
    local listed="service.name=agent,team=infra,title=$2"
    echo "$1: npm $(env -i PATH="$PATH" OTEL_RESOURCE_ATTRIBUTES="$listed" "${@:3}" node of.cjs 2>&1)," \
        "PyPI $(env -i PATH="$PATH" OTEL_RESOURCE_ATTRIBUTES="$listed" "${@:3}" venv/bin/python of.py 2>&1)" >>seen
}
letters=$(printf 'x%.0s' {1..255}) signs=$(printf '%%F0%%9F%%9A%%80%.0s' {1..128})
label "255 letters" "$letters"
label "256 letters" "${letters}x"
label "256 letters, a limit of 100" "${letters}x" OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=100
label "256 letters, OTEL_SERVICE_NAME" "${letters}x" OTEL_SERVICE_NAME=named
label "127 emoji" "${signs%"%F0%9F%9A%80"}"
label "128 emoji" "$signs"
cat seen
diff - seen <<'SEEN' # as seen with Python 3.11 and Node 20, twice, 2026-11
255 letters: npm ["agent","infra",255], PyPI ["agent","infra",255]
256 letters: npm ["unknown_service:node",null,0], PyPI ["agent","infra",256]
256 letters, a limit of 100: npm ["unknown_service:node",null,0], PyPI ["agent","infra",256]
256 letters, OTEL_SERVICE_NAME: npm ["named",null,0], PyPI ["named","infra",256]
127 emoji: npm ["agent","infra",254], PyPI ["agent","infra",254]
128 emoji: npm ["unknown_service:node",null,0], PyPI ["agent","infra",256]
SEEN
