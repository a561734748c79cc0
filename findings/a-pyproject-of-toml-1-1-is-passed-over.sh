#!/usr/bin/env bash
# A pyproject.toml with an inline table over several lines, which TOML 1.1 permits, as nine tools of PyPI read it with
# Python 3.11. The project breaks a rule of each; the exit codes are of the same file, with that table on one line and
# over three:
#
#                     TOML 1.0   1.1
#   uv 0.13.9         0          0    read: the lock file is written
#   ruff 0.17.6       1          1    read
#   mypy 2.4.1        1          0    passed over: "Success: no issues found", and a line on stderr
#   isort 9.0.2       1          0    passed over: a warning
#   black 26.10.1     1          1    an error, instead of what it would change
#   pytest 9.2.0      1          4    an error
#   coverage 7.16.2   2          1    an error: nothing is measured
#   pylint 4.1.4      4          20   its defaults instead of the settings, and a line on stderr
#   pip 24.0          0          2    an error
#
# The tools in Rust and tomli from 2.4 on read TOML 1.1; tomllib, with which those in Python read it from Python 3.11 on,
# only 1.0 (at least until Python 3.13). So an agent that adds a table, and looks at it with `uv lock` and `ruff check`,
# has switched the settings of mypy off, and the check that runs mypy passes where it failed. With an older Python, for
# which they take tomli, the same file may be read.
# Source: https://toml.io/en/v1.1.0#inline-table, https://docs.python.org/3.13/library/tomllib.html ("TOML 1.0.0").
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check uv==0.13.9 ruff==0.17.6 mypy==2.4.1 isort==9.0.2 \
    black==26.10.1 pytest==9.2.0 coverage==7.16.2 pylint==4.1.4 setuptools wheel pip==24.0 2>/dev/null
python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { echo "not this Python"; exit 1; }

mkdir shop
printf 'from os import path, sep\n\n\ndef price(net, tax):\n    return [path, sep, net, 1111111111111, 22222222222]\n' >shop/__init__.py
printf 'def test_price():\n    assert True\n\n\ndef test_two():\n    assert False\n' >test_shop.py
rest='
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[tool.ruff]
line-length = 40
lint.select = ["E501"]
[tool.black]
line-length = 40
[tool.mypy]
disallow_untyped_defs = true
[tool.isort]
force_single_line = true
[tool.pytest.ini_options]
addopts = "-q -p no:cacheprovider"
[tool.coverage.run]
data_file = "measured"
[tool.coverage.report]
fail_under = 100
[tool.pylint.main]
disable = ["all"]
enable = ["unused-argument"]
[tool.setuptools]
packages = ["shop"]'
head='[project]
name = "shop"
version = "1.0"
requires-python = ">=3.11"
'
printf '%s\nurls = { home = "https://shop.example" }\n%s\n' "$head" "$rest" >one
printf '%s\nurls = {\n  home = "https://shop.example",\n}\n%s\n' "$head" "$rest" >several

code() {  # the exit code of a command
    local exit=0
    env -i PATH="$PATH" HOME="$folder" timeout 300 "$@" >"$folder/out" 2>&1 </dev/null || exit=$?
    echo "$exit"
}
both() {  # name, command: its exit codes with either file
    local name=$1 codes=()
    shift
    for file in one several; do
        cp "$file" pyproject.toml
        codes+=("$(code "$@")")
        cp out "$name-$file"
    done
    echo "$name ${codes[*]}"
}
bin=venv/bin
$bin/coverage run --data-file=measured shop/__init__.py
{
    both uv $bin/uv lock --offline
    both ruff $bin/ruff check shop
    both mypy $bin/mypy shop
    both isort $bin/isort --check shop
    both black $bin/black --check shop
    both pytest $bin/pytest
    both coverage $bin/coverage report
    both pylint $bin/pylint shop
    both pip $bin/pip wheel --no-build-isolation --no-deps --wheel-dir wheels .
    grep -h -o 'Success: no issues found in 1 source file' mypy-several
} | tee seen
diff - seen <<'SEEN'
uv 0 0
ruff 1 1
mypy 1 0
isort 1 0
black 1 1
pytest 1 4
coverage 2 1
pylint 4 20
pip 0 2
Success: no issues found in 1 source file
SEEN
# Seen with Python 3.11, twice, 2026-12.
