"""The simulated agent: what everybody may know of it."""

from claudomator_py.domain.kind import KindInfo, Reports

INFO = KindInfo(
    name="simulated",
    has_account=False,
    asks_model=False,
    reads_task=lambda _: False,
    reports=Reports.DOLLARS,
    fences=True,  # it does nothing but what its script says
)
