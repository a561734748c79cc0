"""The kind ``qwen``: Qwen Code."""

from claudomator_py.domain.kind import CommandFiles, KindInfo, Login, LoginFile

INFO = KindInfo(
    name="qwen",
    command=("qwen",),
    login=Login(
        variables=("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"),
        files=(
            LoginFile("oauth_creds.json", ".qwen", "QWEN_HOME"),
            LoginFile("settings.json", ".qwen", "QWEN_HOME", ("security", "auth", "selectedType")),
        ),
        command="qwen auth",
    ),
    fences=True,
    commands=(
        CommandFiles(
            ".qwen",
            ("commands/{}.md", "commands/{}.toml", "skills/{}/SKILL.md"),
            variable="QWEN_HOME",
            shell_marks=("!{",),
        ),
        CommandFiles(".agents", ("skills/{}/SKILL.md",), shell_marks=("!{",)),
    ),
)
