"""The kind ``simulated``: the simulated agent."""

from claudomator_py.domain.kind import KindInfo, Reports

INFO = KindInfo(
    name="simulated",
    has_account=False,
    asks_model=False,
    reads_task=lambda _: False,
    reports=Reports.DOLLARS,
    fences=True,  # it does only what its script says
)
