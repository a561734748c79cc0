"""Gemini CLI: what everybody may know of it."""

from claudomator_py.domain.kind import KindInfo, Login, LoginFile, ModelChoice, Tier

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
            LoginFile("oauth_creds.json", ".gemini"),
            LoginFile("settings.json", ".gemini", setting=("security", "auth", "selectedType")),
        ),
        command="gemini",
    ),
    mcp=True,
    mcp_alone=True,
)
