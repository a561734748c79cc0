"""The client's process: from its command line to its exit code."""

import signal
import sys
import types

from claudomator_py.agents.acp_client.order import Order, order_of
from claudomator_py.agents.acp_client.peer import Peer, PeerGone, RequestRefused
from claudomator_py.agents.acp_client.session import AcpSession
from claudomator_py.agents.client_output import End, Output, Terminated

_GRACE_S = 2.0
_NOT_FOUND = 127


def main() -> int:
    """Do what the command line says; the exit code: 0 where the agent answered."""
    # Its only argument; a parser of command lines would take longer to import than all the rest.
    order = order_of(sys.argv[1].removeprefix("--order="))
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    output = Output()
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, _terminate)
    try:
        peer = Peer(order.command)
    except OSError as error:
        output.event("end", outcome="setup", error=f"{order.command[0]} could not be started: {error.strerror}")
        return _NOT_FOUND
    return _run(peer, order, prompt, output)


def _run(peer: Peer, order: Order, prompt: str, output: Output) -> int:
    session = AcpSession(peer, order, prompt, output)
    patience_s = order.patience_s
    try:
        end = ending(session, peer)
    except Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        session.interrupt()
        end, patience_s = End("interrupted", "it was told to stop"), 0.5
    tell(end, session, peer, output)
    try:
        peer.end(patience_s, _GRACE_S)
    except Terminated:
        peer.end(0, 0)
    return 0 if end.outcome == "answered" else 1


def ending(session: AcpSession, peer: Peer) -> End:
    """Return how the run ends, whatever it ends by."""
    try:
        return session.run()
    except End as end:
        return end
    except RequestRefused as refused:
        facts = session.turn.facts() if session.turn is not None else {}
        return End("refused", refused.message, code=refused.code, data=refused.data, **facts)
    except PeerGone as gone:
        facts = session.turn.facts() if session.turn is not None else {}
        return End("gone", str(gone), exit_code=peer.exit_code(2.0), **facts)


def tell(end: End, session: AcpSession, peer: Peer, output: Output) -> None:
    """Print how it ended."""
    said = "\n".join(peer.noise)
    output.event("end", outcome=end.outcome, error=end.error, step=session.step, said=said, **end.fields)


def _terminate(_number: int, _frame: types.FrameType | None) -> None:
    raise Terminated
