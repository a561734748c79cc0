"""The kind ``gemini``: Gemini CLI."""

from claudomator_py.domain.kind import CommandFiles, KindInfo, Login, LoginCaveat, LoginFile, ModelChoice, Tier

_INDIVIDUAL = LoginCaveat(
    "since 2026-06-18 Google no longer serves free, Pro, Ultra and individual Code Assist accounts",
    "GOOGLE_CLOUD_PROJECT",
    "If it is such an account, name a paid key's variable in pass_env; with Code Assist Standard or Enterprise, set "
    "GOOGLE_CLOUD_PROJECT in the agent's env.",
)

_HOME = "GEMINI_CLI_HOME"
# Seen in 0.61.0: without a terminal, a file of such a name is not read.
_OWN_COMMANDS = (
    "about agents auth bug chat clear commands compress copy corgi directory docs editor extensions footer help hooks "
    "ide init mcp memory model oncall permissions plan policies privacy quit resume rewind settings setup-github "
    "shortcuts skills stats tasks theme tools vim"
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
            LoginFile(".gemini/oauth_creds.json", "", _HOME, caveat=_INDIVIDUAL),
            LoginFile(".gemini/settings.json", "", _HOME, setting=("security", "auth", "selectedType")),
        ),
        command="gemini",
    ),
    mcp=True,
    mcp_alone=True,
    fences=True,
    commands=(
        CommandFiles(".gemini", ("commands/{}.toml",), variable=_HOME, moved_folder=".gemini", shell_marks=("!{",)),
    ),
    own_commands=frozenset(_OWN_COMMANDS.split()),
)
