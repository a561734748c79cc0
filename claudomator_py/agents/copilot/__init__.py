"""The kind ``copilot``: GitHub Copilot CLI."""

from claudomator_py.domain.kind import KindInfo, Login, LoginFile, UsageReporting

INFO = KindInfo(
    name="copilot",
    command=("copilot",),
    login=Login(
        variables=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
        files=(LoginFile("config.json", ".copilot", "COPILOT_HOME"),),
        command="copilot login",
    ),
    reports=UsageReporting.NOTHING,
    mcp=True,
)
