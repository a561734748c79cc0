"""The daemon: reachable, ready, and of one mind with us about the time."""

import time
from pathlib import Path

from claudomator_py.cli.connect import connect
from claudomator_py.cli.findings.finding import Finding, ok, problem, warn
from claudomator_py.client.errors import ClientError, NotStarted
from claudomator_py.domain.views import AgentView, CheckView

MOST_APART_S = 10.0


def daemon_findings(config: Path | None, state_dir: Path | None) -> tuple[list[Finding], list[AgentView] | None]:
    """The daemon, and the agents as it sees them; its PATH may differ from ours. None: it could not be asked."""
    try:
        with connect(config, state_dir) as client:
            found = client.readiness()
            agents = client.agents()
            theirs_s = client.server_time()
    except NotStarted as error:
        return [warn("daemon", error.detail, error.remedy)], None
    except ClientError as error:
        return [problem("daemon", error.detail, error.remedy)], None
    verdict = ok("daemon", f"{client.base_url} is ready")
    if not found.ready:
        detail = f"{client.base_url} is not ready"
        verdict = problem("daemon", detail, "Mend what the checks of the daemon below name.")
    return [verdict, *map(_inside, found.checks), same_time(theirs_s, time.time())], agents


def same_time(theirs_s: float | None, ours_s: float) -> Finding:
    """theirs_s: what the daemon says the time is (Unix time), None if it does not."""
    name = "daemon's clock"
    if theirs_s is None:
        return ok(name, "it does not tell")
    apart_s = theirs_s - ours_s
    if abs(apart_s) <= MOST_APART_S:
        return ok(name, "agrees with this machine's")
    how = "ahead of" if apart_s > 0 else "behind"
    detail = f"is {abs(apart_s):.0f} s {how} this machine's"
    return warn(name, detail, "Let both machines follow a time server: ages and times would mislead.")


def _inside(check: CheckView) -> Finding:
    name = f"daemon: {check.name}"
    if check.ok:
        return ok(name, check.detail)
    judge = problem if check.blocking else warn
    return judge(name, check.detail, check.remedy or "See the daemon's log.")
