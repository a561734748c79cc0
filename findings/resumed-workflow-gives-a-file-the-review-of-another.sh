#!/usr/bin/env bash
# LangGraph 1.2.24 and DBOS 3.4.0 (PyPI): a resumed workflow gives one file the review of another.
#
#   first run    review("a.py"), review("c.py"); at "d.py" the service is down, or the process is killed
#   then         somebody adds b.py
#   resumed      {"a.py": "review of a.py", "b.py": "review of c.py", "c.py": "review of c.py", "d.py": ...}
#
# Both keep what a task (@task) or step (@DBOS.step) has returned, so that a resumed run does not pay for it again. They
# find it by the name of the function and by how many were called before, and do not look at arguments. So in a loop
# over what is there, such as files, open issues or changed tests, one that comes in between moves all results behind
# it: b.py gets the review of c.py, was never looked at, and nothing warns. Both ask that the workflow be deterministic,
# and DBOS refuses a step of another name at the same place; a loop over a list looks the same to it. A list that is
# made in a task or step of its own is kept with the rest, and the resumed run does not see b.py.
# Source: https://docs.langchain.com/oss/python/langgraph/functional-api ("Determinism"),
# https://docs.dbos.dev/python/tutorials/workflow-tutorial ("Determinism")
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24 dbos==3.4.0 2>/dev/null
cat >"$folder/langgraph_run.py" <<'PYTHON'
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task

files = ["a.py", "c.py", "d.py"]
is_down = True


@task
def review(name):
    print("  looks at", name)
    if is_down and name == "d.py":
        raise OSError("the service is down")
    return f"review of {name}"


@task
def listed():
    return list(files)


def runs(get_files):
    """What the resumed run returns."""
    global files, is_down

    @entrypoint(checkpointer=InMemorySaver())
    def work(_):
        return {name: review(name).result() for name in get_files()}

    thread = {"configurable": {"thread_id": "1"}}
    files, is_down = ["a.py", "c.py", "d.py"], True
    try:
        work.invoke("go", thread)
    except OSError:
        print("LangGraph is resumed, with b.py")
    files, is_down = ["a.py", "b.py", "c.py", "d.py"], False
    return work.invoke(None, thread)


mixed, kept = runs(lambda: files), runs(lambda: listed().result())
print(mixed, kept, sep="\n")
assert mixed["b.py"] == mixed["c.py"] == "review of c.py" and mixed["d.py"] == "review of d.py", "it has changed"
assert kept == {name: f"review of {name}" for name in ("a.py", "c.py", "d.py")}, "it has changed"
PYTHON
cat >"$folder/dbos_run.py" <<'PYTHON'
import json, logging, os, sys

from dbos import DBOS, SetWorkflowID

logging.disable(logging.CRITICAL)
files = sys.argv[1].split()
is_first = "b.py" not in files


@DBOS.step()
def review(name):
    print("  looks at", name, flush=True)
    if is_first and name == "d.py":
        os.kill(os.getpid(), 9)
    return f"review of {name}"


@DBOS.workflow()
def work():
    return {name: review(name) for name in files}


DBOS(config={"name": "finding", "system_database_url": "sqlite:///dbos.db", "run_admin_server": False})
DBOS.launch()
with SetWorkflowID("one"):
    print(json.dumps(work() if is_first else DBOS.retrieve_workflow("one").get_result()))
DBOS.destroy()
PYTHON
run() { (cd "$folder" && env -i PATH="$PATH" HOME="$folder" timeout 120 "$folder/venv/bin/python" -W ignore "$@"); }
run langgraph_run.py
run dbos_run.py "a.py c.py d.py" || [ $? = 137 ]
echo "DBOS is resumed, with b.py"
run dbos_run.py "a.py b.py c.py d.py" | tee "$folder/seen"
grep --quiet '"b.py": "review of c.py", "c.py": "review of c.py"' "$folder/seen" || { echo "it has changed"; exit 1; }

# Seen with Python 3.11, twice, 2026-12 (the output of DBOS; that of LangGraph is the same):
#   looks at a.py
#   looks at c.py
#   looks at d.py
# DBOS is resumed, with b.py
#   looks at c.py
#   looks at d.py
# {"a.py": "review of a.py", "b.py": "review of c.py", "c.py": "review of c.py", "d.py": "review of d.py"}
