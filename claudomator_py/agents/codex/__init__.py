"""The kind ``codex``: Codex."""

from claudomator_py.domain.kind import KindInfo, Login, LoginFile, ModelChoice, Tier, shared_login

INFO = KindInfo(
    name="codex",
    command=("codex",),
    models={
        Tier.FAST: ModelChoice(model="gpt-6-luna", effort="low"),
        Tier.BALANCED: ModelChoice(model="gpt-6-sol"),
        Tier.POWERFUL: ModelChoice(model="gpt-6.1-sol", effort="high"),
    },
    provider="openai",
    login=Login(
        variables=("CODEX_API_KEY", "OPENAI_API_KEY"),
        files=(LoginFile("auth.json", ".codex", "CODEX_HOME", caveat=shared_login("CODEX_HOME")),),
        command="codex login",
    ),
    mcp=True,
    fences=True,
)
