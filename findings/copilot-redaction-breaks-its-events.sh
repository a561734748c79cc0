#!/usr/bin/env bash
# GitHub Copilot CLI 1.0.102 (npm) takes secrets out of its own events as text, after they were made JSON: a provider's
# key that is a part of a word is replaced in the names of fields, too. With --output-format json and the key `x`, the
# last event has no "exitCode" but "e******itCode", so whoever reads it does not learn how the run ended; an extreme
# case of what any short key does to any text.
# Nothing leaves the machine: the provider is a closed port of loopback. It takes half a minute, as it asks six times.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder" --silent --no-save --no-package-lock --no-audit --no-fund @github/copilot@1.0.102
for key in x sk-fake-key; do
  echo "key $key:"
  echo "Say hello." | env -i PATH="$PATH" HOME="$folder" TMPDIR="$folder" LANG=C.UTF-8 \
    HTTPS_PROXY=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 \
    COPILOT_OFFLINE=true COPILOT_PROVIDER_TYPE=openai COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:9/v1 \
    COPILOT_MODEL=m1 COPILOT_PROVIDER_API_KEY="$key" \
    "$folder/node_modules/.bin/copilot" --output-format json --no-ask-user \
    | grep '"type":"result"' | grep -o '"[^"]*Code":[0-9]*' || true
done
# Seen with Node 20, 2026-11:
# key x:
# "e******itCode":1
# key sk-fake-key:
# "exitCode":1
