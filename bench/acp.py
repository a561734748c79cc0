"""What a run over ACP costs beside one of a native kind: the time until the agent's program has the prompt, in turns,
and the memory of the client beside it. Both start the same program; the client's is also asked for a session first.

Bars: 60 ms more at its start, 25 MB beside the agent.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from claudomator_py.agents.acp.kind import KIND
from claudomator_py.domain.agent import AgentSpec
from claudomator_py.domain.run import LaunchRequest
from claudomator_py.domain.task import TaskSpec

ROUNDS = 40
AGENT = """
import json, os, sys, time
def has_the_prompt():
    open(os.environ["MARK"], "w").write(str(time.monotonic()))
if sys.argv[1:] == ["native"]:
    sys.stdin.read()
    has_the_prompt()
else:
    for line in sys.stdin:
        asked = json.loads(line)
        result = {}
        if asked["method"] == "initialize":
            result = {"protocolVersion": 1}
        elif asked["method"] == "session/new":
            result = {"sessionId": "s"}
        elif asked["method"] == "session/prompt":
            has_the_prompt()
            call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "git push --force"}}
            told = {"id": 0, "method": "session/request_permission", "params": {"toolCall": call, "options": []}}
            print(json.dumps(told), flush=True)
            sys.stdin.readline()
            for word in range(2000):
                update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{word} "}}
                print(json.dumps({"method": "session/update", "params": {"update": update}}))
            result = {"stopReason": "end_turn"}
            peak = next(line for line in open(f"/proc/{os.getppid()}/status") if line.startswith("VmHWM"))
            open(os.environ["MARK"] + ".kb", "w").write(peak.split()[1])
        print(json.dumps({"id": asked["id"], "result": result}), flush=True)
"""


def measure() -> None:
    """Print medians and ranges, in milliseconds and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = place / "agent.py"
        program.write_text(AGENT)
        command = (sys.executable, "-I", "-S", str(program))
        spec = TaskSpec(name="a-task", instructions="Do it.")
        agent = AgentSpec(name="an-agent", kind="acp", command=command)
        acp = KIND.launch(LaunchRequest("run", agent, spec, spec.instructions, None, "none"))
        took: dict[str, list[float]] = {"native": [], "acp": []}
        peaks = []
        for _ in range(ROUNDS):
            took["native"].append(_start((*command, "native"), place))
            took["acp"].append(_start(acp.argv, place))
            peaks.append(int((place / "mark.kb").read_text()) / 1024)
    native, over = (statistics.median(took[way]) for way in ("native", "acp"))
    print("| the program has the prompt | median ms | least | most |\n|---|---|---|---|")
    for way, times in took.items():
        print(f"| {way} | {statistics.median(times):.0f} | {min(times):.0f} | {max(times):.0f} |")
    print(
        f"\nOver ACP {over - native:.0f} ms later; the client's memory, at its most: {statistics.median(peaks):.1f} MB."
    )


def _start(argv: tuple[str, ...], place: Path) -> float:
    """Milliseconds until the program has the prompt."""
    mark = place / "mark"
    environment = {"PATH": os.environ.get("PATH", os.defpath), "MARK": str(mark)}
    began = time.monotonic()
    subprocess.run(argv, input=b"Do it.", env=environment, stdout=subprocess.DEVNULL, check=True, timeout=60)
    return (float(mark.read_text()) - began) * 1000
