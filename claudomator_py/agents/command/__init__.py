"""Any program as an agent: what everybody may know of it."""

from claudomator_py.domain.kind import KindInfo, Reports

INFO = KindInfo(
    name="command",
    has_account=False,
    asks_model=False,
    reports=Reports.NOTHING,
    plain_output=True,
)
