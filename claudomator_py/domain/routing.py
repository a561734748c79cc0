"""What routing says of a task: who does it, how much harm it could do, and what follows for agents and tiers."""

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from claudomator_py.domain.agent import TIERS, Tier

_STRENGTH = {tier: strength for strength, tier in enumerate(TIERS)}


class Risk(StrEnum):
    """How much harm a task could do if it went to the wrong one."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Constraints(BaseModel):
    """What routing and policy say of agents and tiers, whatever the task's content and the classifier say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tier_floor: Tier | None = None
    """The weakest tier allowed; None: any."""
    tier_ceiling: Tier | None = None
    """The strongest tier allowed; None: any."""
    default_tier: Tier | None = None
    """The tier where neither the task nor the classifier says; None: that of the agent."""
    agents: tuple[str, ...] = ()
    """Agents, or kinds, that may take it; empty: all."""

    @model_validator(mode="after")
    def _leave_a_tier(self) -> Self:
        if self.tier_floor and self.tier_ceiling and _STRENGTH[self.tier_floor] > _STRENGTH[self.tier_ceiling]:
            raise ValueError(f"no tier is between the floor {self.tier_floor} and the ceiling {self.tier_ceiling}")
        return self

    @classmethod
    def parse(cls, text: str | None) -> "Constraints":
        """What ``text`` wrote; None: everything is open. Raises ValueError."""
        return cls() if text is None else cls.model_validate_json(text)

    @property
    def text(self) -> str:
        """The same for the same constraints, as the tasks of one lane are told by it."""
        return self.model_dump_json(exclude_defaults=True)

    @property
    def bounds_tiers(self) -> bool:
        """Whether a tier is ruled out."""
        return self.tier_floor is not None or self.tier_ceiling is not None

    def admits(self, agent: str, kind: str) -> bool:
        """Whether that agent may take the task."""
        return not self.agents or agent in self.agents or kind in self.agents

    @property
    def only_tier(self) -> Tier | None:
        """The one tier that is left, if it is one."""
        return self.tier_floor if self.tier_floor == self.tier_ceiling else None

    def clamp(self, tier: Tier) -> Tier:
        """The tier, or the nearest one that is allowed."""
        if self.tier_floor is not None and _STRENGTH[tier] < _STRENGTH[self.tier_floor]:
            return self.tier_floor
        if self.tier_ceiling is not None and _STRENGTH[tier] > _STRENGTH[self.tier_ceiling]:
            return self.tier_ceiling
        return tier

    def allows(self, tier: Tier) -> bool:
        """Whether it is between floor and ceiling."""
        return self.clamp(tier) is tier


class Routing(BaseModel):
    """Where a task was routed. specialist, skill: ids of a card and of one of its skills; None: nobody in particular.

    risk: None: nobody has judged it.
    """

    model_config = ConfigDict(frozen=True)

    specialist: str | None = None
    skill: str | None = None
    risk: Risk | None = None
    constraints: Constraints = Constraints()
