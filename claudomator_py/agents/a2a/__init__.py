"""The kind ``a2a``: remote agents, over A2A or a plain POST."""

from claudomator_py.domain.kind import KindInfo, UsageReporting

INFO = KindInfo(name="a2a", has_account=False, asks_model=False, remote=True, reports=UsageReporting.NOTHING)
