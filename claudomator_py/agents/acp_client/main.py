"""The client's process: reads the command line, does the run, returns an exit code."""

import sys

from claudomator_py.agents.acp_client import TurnOrder, order_of
from claudomator_py.agents.acp_client.peer import Peer, PeerGone, RequestRefused
from claudomator_py.agents.acp_client.session import AcpSession
from claudomator_py.agents.client_output import End, Output, Terminated, ignore_termination, raise_on_termination
from claudomator_py.json_fields import Event

_GRACE_S = 2.0
_NOT_FOUND = 127


def main() -> int:
    """Do one run and return the exit code: 0 if the agent answered."""
    # There is one argument, and importing a parser would take longer than importing everything else.
    order = order_of(sys.argv[1].removeprefix("--order="))
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    output = Output()
    raise_on_termination()
    try:
        peer = Peer(order.command)
    except OSError as error:
        output.event("end", outcome="setup", error=f"{order.command[0]} could not be started: {error.strerror}")
        return _NOT_FOUND
    return _run(peer, order, prompt, output)


def _run(peer: Peer, order: TurnOrder, prompt: str, output: Output) -> int:
    session = AcpSession(peer, order, prompt, output)
    patience_s = order.patience_s
    try:
        end = ending(session, peer)
    except Terminated:
        ignore_termination()
        facts = _facts(session)
        session.interrupt()
        end, patience_s = End("interrupted", "it was told to stop", **facts), 0.5
    print_end(end, session, peer, output)
    try:
        peer.end(patience_s, _GRACE_S)
    except Terminated:
        peer.end(0, 0)
    return 0 if end.outcome == "answered" else 1


def ending(session: AcpSession, peer: Peer) -> End:
    """Return the run's end, whether it is returned or raised."""
    try:
        return session.run()
    except End as end:
        return end
    except RequestRefused as refused:
        return End("refused", refused.message, code=refused.code, data=refused.data, **_facts(session))
    except PeerGone as gone:
        return End("gone", str(gone), exit_code=peer.exit_code(2.0), **_facts(session))


def _facts(session: AcpSession) -> Event:
    return session.turn.facts() if session.turn is not None else {}


def print_end(end: End, session: AcpSession, peer: Peer, output: Output) -> None:
    """Print the run's end."""
    stderr = "\n".join(peer.noise)
    output.event("end", outcome=end.outcome, error=end.error, step=session.step, said=stderr, **end.fields)
