"""What may be spent, and what was."""

from pydantic import Field

from claudomator_py.core.view import Instant, View


class SpendingView(View):
    """What runs have used, as far as is known: tokens, input and output together, and US dollars.

    unpriced, uncounted: how many of them have ended without anybody knowing their dollars, or their tokens.
    """

    usd: float = 0.0
    tokens: int = 0
    runs: int = 0
    unpriced: int = 0
    uncounted: int = 0


class BudgetView(View):
    """What may be spent, what was, and what is left; None: no limit. text: the figures in words.

    reached: why nothing starts, once it is used up; until: when that is over, for a day or a window. window: the share
    of a window that may be used up; windows_used: what was, by name, 1 being all of it, as far as the account has said.
    """

    usd: float | None = None
    tokens: int | None = None
    runs: int | None = None
    window: str | None = None
    spent: SpendingView
    usd_left: float | None = None
    tokens_left: int | None = None
    runs_left: int | None = None
    windows_used: dict[str, float] = Field(default_factory=dict)
    text: str = ""
    reached: str | None = None
    until: Instant | None = None
