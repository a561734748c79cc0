"""The page of what keeps a task from starting, from the codes and their words."""

from claudomator_py.domain.blocked import BlockCode, BlockParams
from docs.reference.markdown import code, page, table

_INTRODUCTION = """
What keeps a task from starting is a code with parameters. `blocked` of a task says why it is WAITING or QUEUED,
`rejected` of a candidate why an agent did not get it, and `blocked` of a hold what is on the agent:

```json
{"code": "agents_limited", "params": {"agents": [{"code": "limited", "params": {"agent": "alpha",
  "bucket": "claude/default", "window": "five_hour", "reason": "rate_limited", "provenance": "reported",
  "source": "five_hour", "until": "2026-11-22T15:00:00.000Z"}}]}}
```

Codes are never renamed, and parameters keep their meaning; new ones may be added. Whoever shows a code fills in its
words, in the reader's time zone. In the words, `{name}` is a parameter, and `[a|b]` is the first alternative whose
parameters are known. The text next to a code (`reason_text`, `rejected_because`, `text`) has the same words, with times
in UTC.
"""
_OF_TASKS = """
`reason` is the obstacle in one word: the `reason` of the task in lists and in
[`claudomator_pending_tasks`](metrics.md).
"""
_OF_AGENTS = "The words follow the agent's name."
_PARAMETERS = "A code has the parameters in its words that are known; `limit` is composed of those of the hold."


def obstacles() -> str:
    """The codes, what they say, and their parameters."""
    of_tasks = [(code(one), code(one.why), one.words) for one in BlockCode if one.why is not None]
    of_agents = [(code(one), one.words) for one in BlockCode if one.why is None]
    return page(
        "What keeps a task from starting",
        _INTRODUCTION,
        "## Of a task",
        _OF_TASKS,
        table(("code", "reason", "words"), of_tasks),
        "## Of an agent",
        _OF_AGENTS,
        table(("code", "words"), of_agents),
        "## Parameters",
        _PARAMETERS,
        table(("parameter", "meaning"), [(code(name), field.description or "") for name, field in _FIELDS.items()]),
    )


_FIELDS = BlockParams.model_fields
