#!/usr/bin/env bash
# Thirteen linters and formatters, each configured to leave out the folder `gen`, which has one bad file: the exit code
# for the whole project, for that file by its name, and how many files were looked at in the latter case.
#
#                      .    gen/…
#   ruff 0.17.6        0    1       checked
#   black 26.10.1      0    1       checked
#   isort 9.0.2        0    1       checked
#   flake8 7.5.0       0    1       checked
#   mypy 2.4.1         0    1       checked
#   codespell 2.4.3    0    65      checked
#   pylint 4.1.4       0    0       left out, in silence
#   yamllint 1.38.0    0    0       left out, in silence                    (PyPI, up to here)
#   prettier 3.10.1    0    0       left out: "All matched files use Prettier code style!"
#   markdownlint-cli2  0    0       left out: "Summary: 0 error(s)"         (0.22.1)
#   eslint 10.15.0     0    0       left out, with a warning
#   biome 2.6.8        0    1       left out, and that is an error
#   oxlint 1.95.0      0    1       left out, and that is an error          (npm)
#
# Who runs them on the files that an agent has touched, as hooks of agents, pre-commit and lint-staged do, has them
# format generated and vendored files that the project excludes (black without --check and `ruff --fix` rewrite them),
# or fail for a file that nobody may change; with others, the same file passes unseen, or fails because nothing was
# looked at. What helps: --force-exclude (ruff), the setting force-exclude (black), --filter-files (isort),
# --no-errors-on-unmatched (biome), --no-error-on-unmatched-pattern (oxlint); codespell, flake8 and mypy have nothing
# alike, so name no excluded files.
# Source: https://docs.astral.sh/ruff/settings/#force-exclude, https://prettier.io/docs/ignore,
# https://pycqa.github.io/isort/docs/configuration/options.html#filter-files,
# https://mypy.readthedocs.io/en/stable/config_file.html#confval-exclude ("explicitly passed on the command line").
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ruff==0.17.6 black==26.10.1 isort==9.0.2 flake8==7.5.0 \
    mypy==2.4.1 codespell==2.4.3 pylint==4.1.4 yamllint==1.38.0 2>/dev/null
npm install --silent --no-fund --no-audit --ignore-scripts prettier@3.10.1 markdownlint-cli2@0.22.1 eslint@10.15.0 \
    @biomejs/biome@2.6.8 oxlint@1.95.0 >/dev/null

mkdir -p python/gen web/gen
cat >python/pyproject.toml <<'TOML'
[tool.ruff]
exclude = ["gen"]
[tool.black]
exclude = "gen/"
[tool.isort]
skip = ["gen"]
[tool.mypy]
exclude = "gen/"
[tool.codespell]
skip = "gen"
[tool.pylint.main]
ignore-paths = ["gen/.*"]
TOML
printf '[flake8]\nexclude = gen\n' >python/.flake8
printf -- '---\nextends: default\nignore: gen/\n' >python/.yamllint
printf 'import sys\nimport os\nx: int = "a"  # teh\ny   = 1\n' >python/gen/a.py
printf '"""Fine."""\n' >python/fine.py
printf 'a:   1\n' >python/gen/a.yaml

echo 'export default [{ ignores: ["gen/**"] }, { rules: { "no-unused-vars": "error" } }];' >web/eslint.config.mjs
echo '{ "files": { "includes": ["**/*.js", "!gen"] } }' >web/biome.json
echo '{ "ignorePatterns": ["gen/**"], "rules": { "no-debugger": "error" } }' >web/.oxlintrc.json
echo '{ "ignores": ["gen/**"] }' >web/.markdownlint-cli2.jsonc
echo gen >web/.prettierignore
printf 'const   x=1\ndebugger\n' >web/gen/a.js
printf 'console.log("fine");\n' >web/fine.js
printf '#a\n' >web/gen/a.md
printf '# Fine\n' >web/fine.md

code() {  # the exit code of a command
    local exit=0
    env -i PATH="$PATH" HOME="$folder" NO_COLOR=1 timeout 120 "$@" >"$folder/out" 2>&1 </dev/null || exit=$?
    echo "$exit"
}
both() {  # name, what is the whole, what is the file, command
    local name=$1 whole=$2 file=$3
    shift 3
    echo "$name $(code "$@" "$whole") $(code "$@" "$file")"
}
{
    cd python
    bin=../venv/bin
    both ruff . gen/a.py $bin/ruff check
    both black . gen/a.py $bin/black --check
    both isort . gen/a.py $bin/isort --check
    both flake8 . gen/a.py $bin/flake8
    both mypy . gen/a.py $bin/mypy
    both codespell . gen/a.py $bin/codespell
    both pylint . gen/a.py $bin/pylint --recursive=y
    both yamllint . gen/a.yaml $bin/yamllint
    cd ../web
    bin=../node_modules/.bin
    both prettier '*.js' gen/a.js $bin/prettier --check
    cp ../out ../prettier
    both markdownlint-cli2 '**/*.md' gen/a.md $bin/markdownlint-cli2
    both eslint . gen/a.js $bin/eslint
    both biome . gen/a.js $bin/biome lint
    both oxlint . gen/a.js $bin/oxlint
    cd ..
} | tee seen
grep -h 'All matched files' prettier | tee -a seen
diff - seen <<'SEEN'
ruff 0 1
black 0 1
isort 0 1
flake8 0 1
mypy 0 1
codespell 0 65
pylint 0 0
yamllint 0 0
prettier 0 0
markdownlint-cli2 0 0
eslint 0 0
biome 0 1
oxlint 0 1
All matched files use Prettier code style!
SEEN
# Seen with Python 3.11 and Node 20, twice, 2026-12.
