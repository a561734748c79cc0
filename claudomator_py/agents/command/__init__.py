"""The kind ``command``: any program as an agent."""

import re
from typing import Final

from claudomator_py.domain.kind import KindInfo, UsageReporting

_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_INTERPRETERS: Final = _SHELLS | frozenset({
    "bun", "deno", "irb", "lua", "node", "nodejs", "perl", "php", "pwsh", "pypy", "python", "Rscript", "ruby", "tclsh",
})  # fmt: skip
"""Programs that execute a script or their standard input, by their name without a version."""
_SHELL_COMMAND: Final = re.compile(r"-[a-zA-Z]*c")
_SCRIPT: Final = re.compile(r"\w\.(?:bash|cjs|fish|js|ksh|lua|mjs|mts|php|pl|ps1|py|R|rb|sh|tcl|ts|zsh)$")
_DATABASES: Final = frozenset(
    {"clickhouse-client", "duckdb", "mariadb", "mongosh", "mysql", "psql", "redis-cli", "sqlite3"}
)
"""Clients that execute their standard input unless an option says what to execute."""
_SAYS_WHAT: Final = ("-c", "-e", "-f", "--command", "--execute", "--file", "--eval")
_RUNS_ITS_INPUT: Final = frozenset({"at", "batch", "eval", "parallel", "xargs"})
_AGENTS: Final = frozenset({
    "aichat", "aider", "amp", "auggie", "chatgpt", "claude", "claude-code", "cline", "cn", "codebuddy", "codebuff",
    "codex", "copilot", "crush", "cursor-agent", "droid", "fast-agent", "gemini", "gemini-cli", "goose", "gptme",
    "grok", "hermes", "iflow", "interpreter", "junie", "kilo", "kimi", "kimi-cli", "letta", "llm", "mini",
    "mini-swe-agent", "mods", "nanocoder", "ollama", "opencode", "opencode-ai", "openhands", "pi", "plandex",
    "qodercli", "qodo", "qwen", "qwen-code", "ra-aid", "sgpt", "vibe",
})  # fmt: skip
_PARTS_COMMANDS: Final = re.compile(r"[;|&\n(){}]+")


def _reads_task(command: tuple[str, ...]) -> bool:
    """Return whether the program may act on the task's text, as far as its command line shows. command: argv.

    A script does, as nobody sees here what it passes on to a model or a shell. A program behind another one, such as
    ``timeout``, ``sudo``, ``ssh`` or ``sh -c``, counts as well: better judge a text in vain than miss an order.
    """
    for place, argument in enumerate(command):
        program, behind = argument.strip("\"'`$").rpartition("/")[2], command[place + 1 :]
        if "{prompt_file}" in argument or program.partition("@")[0] in _AGENTS or program in _RUNS_ITS_INPUT:
            return True
        if program.rstrip("0123456789.") in _INTERPRETERS and not (
            # The words of a shell's command are arguments themselves.
            program in _SHELLS and any(map(_SHELL_COMMAND.fullmatch, behind))
        ):
            return True
        if _SCRIPT.search(program):
            return True
        if program in _DATABASES and not any(word.startswith(_SAYS_WHAT) for word in behind):
            return True
        scripts = _PARTS_COMMANDS.split(argument) if any(map(str.isspace, argument)) else ()
        if any(_reads_task(tuple(script.split())) for script in scripts):
            return True
    return False


INFO = KindInfo(
    name="command",
    has_account=False,
    asks_model=False,
    reads_task=_reads_task,
    reports=UsageReporting.NOTHING,
    plain_output=True,
)
