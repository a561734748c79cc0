"""The kind ``opencode``: opencode."""

from claudomator_py.domain.kind import KindInfo, Login, LoginFile, UsageReporting

INFO = KindInfo(
    name="opencode",
    command=("opencode",),
    login=Login(
        variables=("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
        files=(LoginFile("opencode/auth.json", ".local/share", "XDG_DATA_HOME"),),
        command="opencode auth login",
    ),
    reports=UsageReporting.DOLLARS,
    mcp=True,
    fences=True,
    permission_variables={"OPENCODE_PERMISSION": None},
)
