"""The state of one remote task, from the first message until it ends or asks. Updates are printed as they come."""

from typing import Any, Final
from urllib.parse import quote, unquote

from claudomator_py.agents.a2a_client.wire import ASKS, ENDS, Artifact, Update
from claudomator_py.agents.client_output import End, Output
from claudomator_py.json_fields import Event

MAX_CONVERSATION: Final = 100
"""Characters of a conversation's text. A longer one cannot be continued, as cutting it would make it ambiguous."""
MAX_ARTIFACTS: Final = 8 * 1024 * 1024
"""Characters of all results together."""
_OUTCOMES: Final = {
    "completed": "completed",
    "failed": "failed",
    "canceled": "canceled",
    "rejected": "rejected",
    "input-required": "question",
    "auth-required": "question",
}


def conversation_text(task_id: str, context_id: str) -> str:
    """Return TASK/CONTEXT, either of which may be empty; the task alone if that is too long; else an empty string."""
    whole = f"{quote(task_id, safe='')}/{quote(context_id, safe='')}"
    short = f"{quote(task_id, safe='')}/"
    return next((name for name in (whole, short) if name != "/" and len(name) <= MAX_CONVERSATION), "")


def ids_of(conversation: str) -> tuple[str, str]:
    """Return the task's and the context's id, each empty if the text has none."""
    task_id, _, context_id = conversation.partition("/")
    return unquote(task_id), unquote(context_id)


class RemoteTask:
    """What is known of the task."""

    def __init__(self, output: Output, conversation: str = "") -> None:
        self._output = output
        self.id, self.context_id = ids_of(conversation)
        self.state = ""
        self.mark = ("", "")
        self.news = 0
        """How many updates brought something new."""
        self._answered = ""
        self._is_under_way = False
        self._status_text = ""
        self._results: dict[str, Artifact] = {}
        self._printed = ("", "")
        self._stale: tuple[str, tuple[str, str]] | None = None
        self._usage: Event | None = None

    @property
    def conversation(self) -> str:
        """How to continue: by the task, or by its context alone when the task takes no more messages."""
        return conversation_text("" if self.ended or self._answered else self.id, self.context_id)

    @property
    def settled(self) -> bool:
        """Whether the task has ended or waits for input."""
        return bool(self._answered) or self.state in ENDS or (self.state in ASKS and self._stale is None)

    @property
    def ended(self) -> bool:
        """Whether the task takes no more messages."""
        return self.state in ENDS

    @property
    def lacks_result(self) -> bool:
        """Whether the task is completed, without a word."""
        return self.state == "completed" and not (self._answered or self._status_text or self._result())

    @property
    def asks(self) -> bool:
        """Whether the task waits for a message."""
        return self.state in ASKS

    def answering(self) -> None:
        """Note that an answer is about to be sent: until the task's status changes, its question is the old one."""
        self._is_under_way = False
        self._stale = (self.state, self.mark) if any(self.mark) else None
        if self._stale is None:
            self.state = ""

    def not_answered(self) -> None:
        """Note that the answer may not have arrived: the old question counts again."""
        self._stale = None

    def take(self, update: Update) -> None:
        """Take an update. Raises End when the results are too large.

        A message before any task is the whole answer, even if it names a task: servers make up the id before they know
        whether there will be a task. A later message is progress.
        """
        if update.is_message:
            self._take_message(update)
            return
        self._is_under_way = True
        self._identify(update)
        if update.usage is not None:
            self._usage = update.usage
        for artifact in update.artifacts:
            self._take_artifact(artifact)
        if update.state and not (self.ended and update.state not in ENDS):
            self._take_status(update)

    def end(self) -> End:
        """Return the run's end; the task must be settled."""
        text = self._answered or self._result() or self._status_text
        payload: dict[str, Any] = {"conversation": self.conversation, "usage": self._usage}
        if self._answered or self.state == "completed":
            return End("completed", text=text, **payload)
        outcome = _OUTCOMES[self.state]
        if outcome == "question":
            lead = (
                "It needs to be authorised elsewhere before it can continue. " if self.state == "auth-required" else ""
            )
            return End(
                outcome, question=f"{lead}{self._status_text or 'It needs input, and does not say what.'}", **payload
            )
        error = self._status_text or f"the remote agent says that the task is {self.state}"
        return End(outcome, error, text=self._result(), **payload)

    def _identify(self, update: Update) -> None:
        self.id = update.task_id or self.id
        self.context_id = update.context_id or self.context_id
        if self._printed != (self.id, self.context_id) and self.id:
            self._printed = (self.id, self.context_id)
            conversation = conversation_text(self.id, self.context_id)
            self._event("task", task=self.id, context=self.context_id, conversation=conversation)

    def _take_message(self, update: Update) -> None:
        if self._is_under_way:
            self._event("status", state=self.state, text=update.text)
            return
        self.context_id = update.context_id or self.context_id
        self._answered = update.text or "(an empty message)"

    def _event(self, kind: str, **fields: Any) -> None:
        """Print an update that brings something new."""
        self.news += 1
        self._output.event(kind, **fields)

    def _take_status(self, update: Update) -> None:
        if self._stale == (update.state, update.mark):
            return
        self._stale = None
        if (update.state, update.mark, update.text) != (self.state, self.mark, self._status_text):
            self._event("status", state=update.state, text=update.text)
        self.state, self.mark = update.state, update.mark
        self._status_text = update.text or (self._status_text if update.state in ENDS else "")

    def _take_artifact(self, piece: Artifact) -> None:
        before = self._results.get(piece.id)
        old = before.text if before is not None else ""
        text = old + piece.text if piece.append else piece.text
        if sum(len(result.text) for result in self._results.values()) - len(old) + len(text) > MAX_ARTIFACTS:
            raise End("too_large", f"its results are larger than {MAX_ARTIFACTS} characters")
        name = piece.name or (before.name if before is not None else "")
        self._results[piece.id] = Artifact(piece.id, name, text, append=False)
        if new := text.removeprefix(old):
            self._event("artifact", name=name, text=new)

    def _result(self) -> str:
        return "\n\n".join(result.text for result in self._results.values() if result.text)
