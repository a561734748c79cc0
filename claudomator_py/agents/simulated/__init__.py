"""The kind ``simulated``: the simulated agent."""

from claudomator_py.domain.kind import KindInfo, UsageReporting

INFO = KindInfo(
    name="simulated",
    has_account=False,
    asks_model=False,
    reads_task=lambda _: False,
    reports=UsageReporting.DOLLARS,
    fences=True,  # it does only what its script says
)
