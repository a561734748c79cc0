"""The kind ``hub``: agents that have connected to the hub."""

from claudomator_py.domain.kind import KindInfo, UsageReporting

INFO = KindInfo(
    name="hub", has_account=False, asks_model=False, remote=True, configured=False, reports=UsageReporting.NOTHING
)
