"""The rules as an operator writes them: in order, each with a condition and what follows if it is true."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from claudomator_py.acts import Reach
from claudomator_py.domain.agent import TIERS, Tier
from claudomator_py.domain.fields import Count, Duration, Flag, LineList, Name, Prose, Strict, Text, Tools, refusal
from claudomator_py.domain.routing import Risk, ToolLimits
from claudomator_py.domain.task import PermissionMode, Tags
from claudomator_py.domain.units import DAY_MS, MINUTE_MS
from claudomator_py.policy.condition import MAX_LENGTH, BadCondition, Condition
from claudomator_py.texts import json_hash

MODEL_RISK = "model-risk"
"""Name of the check that reports a model's assessment of a task's risk."""
NOT_READ = "not-read"
"""Name of the check that reports that a task's text could not be read."""
BEFORE_FIRST_RUN = "before-first-run"
"""Name of the check that reports that the task itself demands approval."""
BUILT_IN = {"high-risk": "approve", "harmful": "deny"}
"""The built-in rules and what each demands; see ``verdict.with_built_in``."""


def _condition(text: str) -> str:
    try:
        Condition(text)
    except BadCondition as bad:
        raise refusal(str(bad), bad.remedy or None) from None
    return text


class Approval(Strict):
    """Who must approve a task before any of it runs."""

    by: LineList = Field(
        (),
        description="Roles (`operate`, `admin`) or names of tokens, one of which must approve. Default: whoever may "
        "operate.",
    )
    within: Duration | None = Field(
        None,
        ge=MINUTE_MS,
        le=365 * DAY_MS,
        description="How long it may take; after that the task fails, with reason `expired`. Default: any time.",
    )


def _approval(value: object) -> object:
    return {} if value is True else value


class TierBounds(Strict):
    """Bounds of the model's strength."""

    floor: Tier | None = Field(None, description="The weakest tier.")
    ceiling: Tier | None = Field(None, description="The strongest tier.")

    @model_validator(mode="after")
    def _leave_a_tier(self) -> "TierBounds":
        if self.floor and self.ceiling and TIERS.index(self.floor) > TIERS.index(self.ceiling):
            raise refusal(f"no tier is between `{self.floor}` and `{self.ceiling}`", "swap them")
        return self


class ToolBounds(Strict):
    """The most that an agent may do."""

    mode: PermissionMode | None = Field(
        None, description="The freest mode: `plan`, `default`, `acceptEdits` or `bypassPermissions`."
    )
    allowed_tools: Tools | None = Field(None, description="The only tools that may be allowed without asking.")
    disallowed_tools: Tools = Field((), description="Tools that it may not use.")

    @property
    def limits(self) -> ToolLimits:
        """The bounds as a value."""
        return ToolLimits.model_validate(self.model_dump())


class Rule(Strict):
    """One rule. Its demands add to those of other rules."""

    name: Name = Field(description="What decisions and `why` call it.")
    when: Annotated[Text, Field(min_length=1, max_length=MAX_LENGTH), AfterValidator(_condition)] | None = Field(
        None, description="A condition in CEL on `task`, `actor`, `now`, `spent` and `limits`. Default: always."
    )
    allow: Flag = Field(
        False, description="Allow the task: no later rule is asked, nor those on high risk that are built in."
    )
    deny: Annotated[Prose, Field(min_length=1, max_length=500)] | None = Field(
        None, description="Refuse the task, which fails with reason `rejected` and this message."
    )
    approve: Annotated[Approval | None, BeforeValidator(_approval)] = Field(
        None, description="Have a person approve the task first; `true`: whoever may operate, at any time."
    )
    risk: Risk | None = Field(None, description="Raise the task's risk to at least this, for the rules that follow.")
    specialist: Name | None = Field(None, description="The specialist who does it, whoever else would.")
    exclude_specialists: LineList = Field((), description="Specialists who do not do it.")
    requires: Tags = Field((), description="Capabilities that whoever does it must have.")
    agents: LineList = Field((), description="The only agents, or kinds, that may take it.")
    exclude_agents: LineList = Field((), description="Agents, or kinds, that may not take it.")
    hosts: LineList = Field((), description="The only hosts where it may run; `local` is this machine.")
    exclude_hosts: LineList = Field((), description="Hosts where it may not run.")
    tier: TierBounds | None = Field(None, description="Bounds of the model's strength.")
    tools: ToolBounds | None = Field(
        None, description="The most that its agent may do; what the task and its specialist ask for is cut down to it."
    )
    reach: Reach | None = Field(
        None,
        description="The farthest that its runs may act: `tree`, `network` or `publish`. A task that asks for less "
        "keeps to that.",
    )
    isolation: Literal["worktree"] | None = Field(None, description="`worktree`: run it in a work tree of its own.")
    concurrency: Count | None = Field(
        None, ge=1, le=1_000, description="Most tasks to which this rule applies that may run at a time."
    )

    @model_validator(mode="after")
    def _require_effect(self) -> "Rule":
        if not self.effects:
            raise refusal("demands nothing", "add `deny`, `approve`, or another effect")
        if self.allow and (self.deny is not None or self.approve is not None):
            raise refusal("both allows and stops the task", "make two rules of it; the first that allows ends the list")
        if self.name in (*BUILT_IN, MODEL_RISK, BEFORE_FIRST_RUN):
            raise refusal(f"`{self.name}` is the name of a rule that is built in", "choose another name")
        return self

    @property
    def effects(self) -> tuple[str, ...]:
        """Its demands, by the names of its keys."""
        return tuple(name for name in type(self).model_fields if name not in ("name", "when") and getattr(self, name))


def unique(rules: Sequence[Rule]) -> Sequence[Rule]:
    """Return the rules if their names are unique. Raises a refusal otherwise."""
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise refusal(f"two rules are called `{name}`", "give each a name of its own")
    return rules


Rules = Annotated[tuple[Rule, ...], Field(max_length=500), AfterValidator(unique)]


def policy_hash(rules: Sequence[Rule]) -> str:
    """Return the SHA-256 of the rules in hexadecimal: equal for equal rules, however they are written."""
    return json_hash([rule.model_dump(mode="json", exclude_defaults=True) for rule in rules])
