#!/usr/bin/env bash
# uv 0.13.9 beside pipx 1.8.0 (PyPI): what is started by `uvx PROGRAM`, or by `uv run PROGRAM`, is the program and all
# that it starts: `python` is the program's own environment there, also behind the user's activated environment in PATH.
#
# A runner that starts commands for others is installed and started in one of four ways, and its commands differ by it:
#   uvx             PATH begins with the runner's environment in uv's cache, so `python -m pytest` of a task has the
#                   runner's dependencies and not the project's
#   uv run          the same, and VIRTUAL_ENV names it as well, so that `uv pip install`, in a project with a .venv of
#                   its own, installs into the runner's environment, which the runner itself is using
#   pipx run, and a program of `uv tool install`: both as outside, and `uv pip install` takes the activated environment
# The documentation calls the environment of uvx "isolated"; nothing is printed. Start a runner by the program that
# `uv tool install` leaves, or give what it starts a PATH of your own, and no VIRTUAL_ENV.
# Source: https://docs.astral.sh/uv/concepts/tools/#tool-environments, https://docs.astral.sh/uv/concepts/projects/run/
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv starters
starters/bin/pip install --quiet --disable-pip-version-check uv==0.13.9 pipx==1.8.0 2>/dev/null
# The user's environment, activated; and a project with an environment of its own, in which the commands are run.
python3 -m venv user
user/bin/pip install --quiet --disable-pip-version-check six==1.17.0 2>/dev/null
mkdir project && python3 -m venv project/.venv
mkdir bin && ln -s "$work"/starters/bin/{uv,uvx,pipx} bin
export PATH="$work/bin:$work/user/bin:$PATH" VIRTUAL_ENV="$work/user" HOME="$work" UV_SYSTEM_CERTS=true
export PIPX_HOME="$work/pipx" UV_CACHE_DIR="$work/cache" UV_TOOL_DIR="$work/tools" UV_TOOL_BIN_DIR="$work/bin"
mkdir runner && cat >runner/pyproject.toml <<'TOML'
[project]
name = "runner"
version = "1"
requires-python = ">=3.11"
dependencies = ["python-dotenv[cli]==1.2.4"]
TOML
uv tool install --quiet 'python-dotenv[cli]==1.2.4'
touch empty

# The command of a task, as the runner `dotenv run` starts it, in the project.
cat >task <<'BASH'
cd project
python -c 'import six' 2>/dev/null && modules="the user's modules" || modules="none of the user's modules"
rm -rf "$HOME"/{user,project/.venv,runner/.venv}/lib/python3*/site-packages/attrs*
uv pip install --quiet attrs==25.4.0
for folder in "$HOME"/user "$HOME"/project/.venv "$HOME"/runner/.venv; do
    [ -d "$folder"/lib/python3*/site-packages/attrs ] && place=${folder#"$HOME"/} || true
done
echo "$1: $modules; uv pip install goes into ${place:-none of them}" >>"$HOME/seen"
BASH
runs() { timeout 120 "${@:2}" dotenv -f empty run -- bash task "$1" 2>>log; }
bash task "outside"
runs "uvx" uvx --quiet --from 'python-dotenv[cli]==1.2.4'
runs "uv run" uv run --quiet --project runner
runs "pipx run" pipx run --quiet --spec 'python-dotenv[cli]==1.2.4'
runs "uv tool install" env
diff - seen <<'SEEN' # as seen with Python 3.11, twice, 2026-11
outside: the user's modules; uv pip install goes into user
uvx: none of the user's modules; uv pip install goes into user
uv run: none of the user's modules; uv pip install goes into runner/.venv
pipx run: the user's modules; uv pip install goes into user
uv tool install: the user's modules; uv pip install goes into user
SEEN
