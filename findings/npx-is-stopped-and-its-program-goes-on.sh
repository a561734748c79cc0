#!/usr/bin/env bash
# npm 11.19.1 (npm), `npx` and `npm exec`: SIGTERM ends npx and leaves the program that it started running; SIGINT ends
# neither.
#
# Agents and MCP servers are mostly configured as `npx -y PACKAGE`, and their clients end them by a signal to the process
# that they started. npx starts the program through `sh -c` and passes the signal to that shell alone: dash dies of
# SIGTERM without a word to its child, and npx ends with it, by the signal, so the client sees a clean end. SIGINT makes
# the shell wait for its child, which has heard of nothing. With bash as npm's script-shell, which executes a single
# command in its own place, both signals arrive, so it may work on a desktop and not in a container. Closing the
# program's standard input, and an exit code, pass through. `uv run` (uv 0.13.9, PyPI) passes both signals on.
#
# So a client has to signal the whole process group or tree, or close standard input first and wait.
# Source: https://docs.npmjs.com/cli/v11/commands/npx, https://docs.npmjs.com/cli/v11/using-npm/config#script-shell.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/agent" "$work/home" "$work/project"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv==0.13.9

# A program that writes down its process and each signal, and then ends.
echo '{"name": "some-agent", "version": "1.0.0", "bin": {"some-agent": "run.js"}}' >"$work/agent/package.json"
cat >"$work/agent/run.js" <<'NODE'
#!/usr/bin/env node
const fs = require("fs");
const ended = (how, code) => { fs.appendFileSync(process.env.MARK, ` ${how}`); process.exit(code); };
process.on("SIGTERM", () => ended("SIGTERM", 3)).on("SIGINT", () => ended("SIGINT", 3));
process.stdin.on("end", () => ended("EOF", 75)).resume();
fs.writeFileSync(process.env.MARK, `${process.pid}`);
NODE
chmod +x "$work/agent/run.js"
cd "$work/project"
echo '{}' >package.json
npm install --silent --no-fund --no-audit npm@11.19.1 "$work/agent" >/dev/null

cat >"$work/signals.py" <<'PYTHON'
import os, pathlib, signal, subprocess, sys, time

work, (name, *command) = pathlib.Path(sys.argv[1]), sys.argv[2:]
mark = work / "mark"


def alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


for how in ("SIGTERM", "SIGINT", "EOF"):
    mark.unlink(missing_ok=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = subprocess.Popen(command, **pipes, env={**os.environ, "MARK": str(mark)}, start_new_session=True)
    while not mark.exists() or not mark.read_text():
        assert started.poll() is None, "it did not start"
        time.sleep(0.1)
    time.sleep(1)
    if how == "EOF":
        started.stdin.close()
    else:
        started.send_signal(getattr(signal, how))
    try:
        ended = f"ends with {started.wait(10)}"
    except subprocess.TimeoutExpired:
        ended = "goes on"
    time.sleep(1)
    program, *heard = mark.read_text().split()
    print(f"{name}, {how}: it {ended}; its program heard {heard or 'nothing'}", "and goes on" * alive(program))
    for group in {started.pid, int(program)}:
        try:
            os.killpg(os.getpgid(group), signal.SIGKILL)
        except ProcessLookupError:
            pass
PYTHON
run() {
    env -i PATH="$PATH" HOME="$work/home" TMPDIR="$work" timeout 120 python3 "$work/signals.py" "$work" "$@"
}
{
    run npx node_modules/.bin/npx --no-install --script-shell=/bin/dash some-agent
    run "npx with bash" node_modules/.bin/npx --no-install --script-shell=/bin/bash some-agent
    run "uv run" "$work/venv/bin/uv" run --no-project --offline node "$work/agent/run.js"
} | sed 's/ *$//' | tee "$work/seen"
# Seen with Node 20, twice, 2026-11:
diff - "$work/seen" <<'SEEN'
npx, SIGTERM: it ends with -15; its program heard nothing and goes on
npx, SIGINT: it goes on; its program heard nothing and goes on
npx, EOF: it ends with 75; its program heard ['EOF']
npx with bash, SIGTERM: it ends with 3; its program heard ['SIGTERM']
npx with bash, SIGINT: it ends with 3; its program heard ['SIGINT']
npx with bash, EOF: it ends with 75; its program heard ['EOF']
uv run, SIGTERM: it ends with 3; its program heard ['SIGTERM']
uv run, SIGINT: it ends with 3; its program heard ['SIGINT']
uv run, EOF: it ends with 75; its program heard ['EOF']
SEEN
