"""Asks the classifier for tiers outside the tick: commits the question first, and the answer when it arrives."""

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

from sqlalchemy import Connection

from claudomator_py.dispatch.cheap_model import GuardedModel
from claudomator_py.domain.agent import Tier
from claudomator_py.domain.crashpoint import crashpoint
from claudomator_py.domain.decision import Classification as Decided
from claudomator_py.domain.decision import Versions
from claudomator_py.domain.rationale import RationaleCode, rationale
from claudomator_py.log import get_logger
from claudomator_py.ports import Clock
from claudomator_py.scheduler.classification import (
    PROMPT_VERSION,
    Cause,
    ModelFault,
    TierQuestion,
    Unusable,
    cache_key,
    parse_answer,
    tier_question,
)
from claudomator_py.scheduler.records import TierRecord
from claudomator_py.scheduler.tiers import AskTier
from claudomator_py.store import classification_rows, task_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.store.events import record
from claudomator_py.store.tables import ClassificationRow
from claudomator_py.tasks.decisions import record_tier
from claudomator_py.values import dataclass

log = get_logger("claudomator.classify")

CONCURRENCY = 4
"""Questions that are asked in parallel."""


@dataclass(frozen=True, slots=True)
class _TierQuestion:
    """A committed question that the model has not been asked yet."""

    task_id: str
    generation: int
    revision: int
    """The revision of the task that it is about."""
    agent: str
    question: TierQuestion
    key: str
    asked_ms: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class _TierReply:
    source: str
    tier: Tier | None = None
    cause: Cause | None = None
    detail: str | None = None
    said_agent: str | None = None
    retry_after_s: float | None = None


class TierAsker:
    """Asks the classifier planned questions, a few in parallel. If it fails, the default tier applies."""

    def __init__(
        self, database: Database, model: GuardedModel, timeout_ms: int, clock: Clock, *, pool: Executor | None = None
    ) -> None:
        """pool: asks the questions; None for a pool of its own."""
        self._database = database
        self.model = model
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._pool = pool or ThreadPoolExecutor(max_workers=CONCURRENCY, thread_name_prefix="classify")

    def ask(self, asks: Sequence[AskTier]) -> dict[str, Exception]:
        """Commit the questions and ask them in the background.

        Return, by task id, why a question could not be committed. Raises StoreUnavailable.
        """
        now_ms = self._clock()
        committing = [(ask, self._database.submit(partial(self._commit, ask=ask, now_ms=now_ms))) for ask in asks]
        failed: dict[str, Exception] = {}
        for ask, future in committing:
            try:
                asked = future.result()
                crashpoint("tier-asked")
                if asked is not None:
                    self._pool.submit(self._work, asked)
            except StoreUnavailable:
                raise
            except Exception as error:
                failed[ask.head.task_id] = error
        return failed

    def close(self, *, wait: bool = False) -> None:
        """Stop asking. Open questions stay without an answer until their deadline.

        wait: wait for the answers to open questions, up to the timeout.
        """
        self._pool.shutdown(wait=wait, cancel_futures=not wait)
        self.model.close()

    def _commit(self, connection: Connection, ask: AskTier, now_ms: int) -> _TierQuestion | None:
        task = task_rows.find(connection, ask.head.task_id)
        if task is None or task.version != ask.head.version:
            return None
        if classification_rows.find(connection, task.id, task.generation) is not None:
            return None
        hold = self.model.hold(connection, now_ms)
        if hold is not None and not ask.urgent:
            return None  # Not urgent: ask when the account is no longer limited.
        spec = task_rows.spec_of(connection, task.id, task.revision)
        question = TierQuestion(spec.name, spec.instructions, ask.agent_type, dict(ask.models))
        key = cache_key(question, self.model.name)
        deadline_ms = now_ms + self._timeout_ms
        row = ClassificationRow(
            task_id=task.id,
            generation=task.generation,
            agent=ask.agent,
            model=self.model.name,
            cache_key=key,
            asked_ms=now_ms,
            deadline_ms=deadline_ms,
        )
        classification_rows.add(connection, row)
        asked = _TierQuestion(task.id, task.generation, task.revision, ask.agent, question, key, now_ms, deadline_ms)
        # A restart repeats all decisions, so only the first generation uses the cache.
        known = classification_rows.cached(connection, key) if task.generation == 1 else None
        if known is not None:
            tier, reason = known
            self._record(connection, asked, _TierReply("cache", tier, detail=reason), now_ms)
            return None
        if hold is not None:
            detail = self.model.hold_text()
            self._record(connection, asked, _TierReply("default", cause=Cause.LIMITED, detail=detail), now_ms)
            return None
        return asked

    def _work(self, asked: _TierQuestion) -> None:
        """Ask the question on a thread of the pool, and store the answer. If that fails, the deadline passes."""
        try:
            answer = self._answer(asked)
            self._database.write(lambda connection: self._record(connection, asked, answer, self._clock()))
        except StoreUnavailable as error:
            log.warning("answer_not_recorded", task_id=asked.task_id, problem=str(error))
        except Exception:
            log.exception("classifying_failed", task_id=asked.task_id)

    def _answer(self, asked: _TierQuestion) -> _TierReply:
        left_s = (asked.deadline_ms - self._clock()) / 1000
        if left_s <= 0:
            return _TierReply("default", cause=Cause.TIMEOUT, detail="too many questions were ahead of it")
        try:
            # An operator's restart asks even a failing model; the answer then counts as the breaker's trial.
            text = self.model.ask(tier_question(asked.question), left_s, anyway=asked.generation > 1)
            parsed = parse_answer(text, asked.question)
        except ModelFault as fault:
            return _TierReply("default", cause=fault.cause, detail=fault.detail, retry_after_s=fault.retry_after_s)
        except Unusable as unusable:
            return _TierReply("default", cause=unusable.cause, detail=unusable.detail)
        return _TierReply("classifier", parsed.tier, detail=parsed.reason, said_agent=parsed.agent_type)

    def _record(self, connection: Connection, asked: _TierQuestion, answer: _TierReply, now_ms: int) -> None:
        written = classification_rows.answer(
            connection,
            asked.task_id,
            asked.generation,
            source=answer.source,
            tier=answer.tier,
            cause=answer.cause.value if answer.cause is not None else None,
            detail=answer.detail,
            said_agent=answer.said_agent,
            now_ms=now_ms,
        )
        if not written:
            return
        if answer.cause is Cause.LIMITED:
            self.model.met(connection, asked.task_id, answer.detail, answer.retry_after_s, now_ms)
        if answer.source == "classifier" and answer.tier is not None:
            classification_rows.remember(connection, asked.key, answer.tier, answer.detail or "", now_ms)
        fields = {"source": answer.source, "tier": answer.tier, "cause": answer.cause, "detail": answer.detail}
        data = {key: value for key, value in fields.items() if value is not None}
        record(connection, now_ms, "classified", task_id=asked.task_id, data=data)
        self._decided(connection, asked, answer, now_ms)
        if answer.cause is not None:
            about = log.bind(task=asked.question.name, task_id=asked.task_id)
            about.warning("classifier_fallback", cause=answer.cause.value, detail=answer.detail)

    def _decided(self, connection: Connection, asked: _TierQuestion, answer: _TierReply, now_ms: int) -> None:
        task = task_rows.get(connection, asked.task_id)
        if task.generation != asked.generation:
            return  # It was restarted meanwhile and is decided again.
        classification = Decided(
            source="default" if answer.tier is None else "cache" if answer.source == "cache" else "classifier",
            cause=answer.cause,
            reason=answer.detail,
            asked_about=asked.agent,
            said_agent=answer.said_agent,
        )
        code = RationaleCode.UNANSWERED if answer.tier is None else RationaleCode.ANSWERED
        decided = TierRecord(
            reason=rationale(code, text=answer.detail),
            tier=answer.tier,
            agent=asked.agent,
            classification=classification,
            versions=Versions(classifier=f"{self.model.name}/{PROMPT_VERSION}"),
            latency_ms=now_ms - asked.asked_ms,
        )
        record_tier(connection, task, asked.revision, decided, now_ms)
