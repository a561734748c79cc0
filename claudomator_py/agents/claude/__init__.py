"""The kind ``claude``: Claude Code."""

from claudomator_py.domain.kind import (
    CommandFiles,
    KindInfo,
    Login,
    LoginFile,
    ModelChoice,
    Tier,
    UsageReporting,
    shared_login,
)

INFO = KindInfo(
    name="claude",
    command=("claude",),
    models={
        Tier.FAST: ModelChoice(model="haiku"),
        Tier.BALANCED: ModelChoice(model="sonnet"),
        Tier.POWERFUL: ModelChoice(model="opus"),
    },
    provider="anthropic",
    login=Login(
        variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        files=(
            LoginFile(".credentials.json", ".claude", "CLAUDE_CONFIG_DIR", caveat=shared_login("CLAUDE_CONFIG_DIR")),
        ),
        command="claude /login",
    ),
    reports=UsageReporting.DOLLARS,
    reports_windows=True,
    mcp=True,
    mcp_alone=True,
    background=True,
    fences=True,
    permission_variables={"IS_SANDBOX": "1"},
    commands=(
        CommandFiles(
            ".claude",
            ("commands/{}.md", "skills/{}/SKILL.md"),
            variable="CLAUDE_CONFIG_DIR",
            looks_above=True,
            shell_marks=("!`", "```!"),
        ),
    ),
)
