"""The kind ``gemini``: Gemini CLI."""

from claudomator_py.domain.kind import KindInfo, Login, LoginCaveat, LoginFile, ModelChoice, Tier

_INDIVIDUAL = LoginCaveat(
    "since 2026-06-18 Google no longer serves free, Pro, Ultra and individual Code Assist accounts",
    "GOOGLE_CLOUD_PROJECT",
    "If it is such an account, name a paid key's variable in pass_env; with Code Assist Standard or Enterprise, set "
    "GOOGLE_CLOUD_PROJECT in the agent's env.",
)

INFO = KindInfo(
    name="gemini",
    command=("gemini",),
    models={
        Tier.FAST: ModelChoice(model="flash-lite"),
        Tier.BALANCED: ModelChoice(model="flash"),
        Tier.POWERFUL: ModelChoice(model="pro"),
    },
    provider="gcp.gemini",
    login=Login(
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        files=(
            LoginFile("oauth_creds.json", ".gemini", caveat=_INDIVIDUAL),
            LoginFile("settings.json", ".gemini", setting=("security", "auth", "selectedType")),
        ),
        command="gemini",
    ),
    mcp=True,
    mcp_alone=True,
    fences=True,
)
