#!/usr/bin/env bash
# Linters and formatters, each told to check a folder `src` that is not there, as after an agent has renamed it to `lib`.
# Exit code, and whether anything is said:
#
#   0, nothing           codespell 2.4.3, pydocstyle 6.3.0, radon 6.0.1, xenon 0.9.3; xo 2.0.2, a line end
#   0, "0 files"         markdownlint-cli2 0.22.1, htmlhint 1.9.2
#   0, its own help      markdownlint-cli 0.48.0
#   0, "Can't open src"  jshint 2.13.6, which prints ERROR before it
#   not 0                black 26.10.1 (2), flake8 7.5.0 (1), isort 9.0.2 (1), mypy 2.4.1 (2), pylint 4.1.4 (1),
#                        pyright 1.1.414 (4), ruff 0.17.6 (1), vulture 2.16 (1), yamllint 1.38.0 (255),
#                        biome 2.6.8 (1), eslint 10.15.0 (2), oxlint 1.95.0 (1), prettier 3.10.1 (2)
#
# In words prettier passes as well: below the error for the folder it says "All matched files use Prettier code style!".
# xenon is made to fail a build that is too complex; it is as content with a folder that is not there as with an empty
# one. A check of several folders, `codespell src docs`, goes on without the missing one, too.
#
# So a check that names a folder goes on passing after the folder was renamed, and checks none of what is in it.
# `test -d src && codespell src` fails then. The help of markdownlint-cli and the ERROR of jshint stand in a log that
# nobody reads after a success.
# Source: https://xenon.readthedocs.io/en/latest/ ("if any of the thresholds is violated, returns with a non-zero exit
# code"), https://github.com/codespell-project/codespell, https://github.com/DavidAnson/markdownlint-cli2 (exit codes).
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check black==26.10.1 codespell==2.4.3 flake8==7.5.0 isort==9.0.2 \
    mypy==2.4.1 pydocstyle==6.3.0 pylint==4.1.4 pyright==1.1.414 radon==6.0.1 ruff==0.17.6 vulture==2.16 xenon==0.9.3 \
    yamllint==1.38.0 2>/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts @biomejs/biome@2.6.8 eslint@10.15.0 htmlhint@1.9.2 \
    jshint@2.13.6 markdownlint-cli@0.48.0 markdownlint-cli2@0.22.1 oxlint@1.95.0 prettier@3.10.1 xo@2.0.2 >/dev/null

mkdir -p work/lib && cd work
printf 'x = 1\n' >lib/fine.py
printf 'console.log("fine");\n' >lib/fine.js
echo 'export default [];' >eslint.config.mjs
checked() {  # name, then the command
    local name=$1 exit=0
    shift
    env -i PATH="$PATH" HOME="$folder" NO_COLOR=1 timeout 120 "$@" src >"$folder/$name" 2>&1 </dev/null || exit=$?
    printf '%s %s%s\n' "$name" "$exit" "$([ -s "$folder/$name" ] || echo ', nothing')"
}
python=(codespell pydocstyle 'radon cc' 'xenon --max-absolute A' 'black --check' flake8 'isort --check' mypy pylint pyright
    'ruff check' vulture yamllint)
node=(markdownlint-cli2 markdownlint htmlhint jshint xo 'biome lint' eslint oxlint 'prettier --check')
{
    for tool in "${python[@]}"; do checked "${tool%% *}" ../venv/bin/${tool}; done
    for tool in "${node[@]}"; do checked "${tool%% *}" ../node_modules/.bin/${tool}; done
} | tee ../seen
cd ..
grep -ho -e 'Linting: 0 file(s)' markdownlint-cli2 | tee -a seen
grep -ho -e 'Scanned 0 files' htmlhint | tee -a seen
grep -ho -e 'Usage: markdownlint' markdownlint | tee -a seen
grep -ho -e "Can't open src" jshint | tee -a seen
grep -ho -e 'All matched files use Prettier code style!' prettier | tee -a seen
diff - seen <<'SEEN'
codespell 0, nothing
pydocstyle 0, nothing
radon 0, nothing
xenon 0, nothing
black 2
flake8 1
isort 1
mypy 2
pylint 1
pyright 4
ruff 1
vulture 1
yamllint 255
markdownlint-cli2 0
markdownlint 0
htmlhint 0
jshint 0
xo 0
biome 1
eslint 2
oxlint 1
prettier 2
Linting: 0 file(s)
Scanned 0 files
Usage: markdownlint
Can't open src
All matched files use Prettier code style!
SEEN
# Seen with Python 3.11 and Node 20, twice, 2026-12.
