"""Words that people type for commands with another name here, and what to type instead."""

from collections.abc import Mapping
from typing import Final

_CANCEL = (
    "`claudomator cancel TASK` ends a task. The daemon ends with Ctrl-C, or with `systemctl --user stop claudomator`"
)
_REMOVE = (
    "`claudomator cancel TASK` ends a task, `claudomator cleanup` removes what ended tasks leave, and "
    "`claudomator schedule delete NAME` ends a schedule"
)
_STATUS = "`claudomator list` lists tasks, and `claudomator status` shows everything at a glance"
_SUBMIT = '`claudomator add "TEXT"` submits a task, as do `claudomator submit FILE` and a file in the inbox'
_SERVE = "`claudomator serve` starts the daemon; `claudomator submit FILE` submits a task"
_PAUSE = (
    "`claudomator hold AGENT` starts nothing on an agent, `claudomator drain` nothing at all, and "
    "`claudomator schedule pause NAME` pauses a schedule"
)
_RESUME = (
    "`claudomator release AGENT` ends a hold, `claudomator undrain` a drain, `claudomator schedule resume NAME` a "
    "pause, and `claudomator restart TASK --resume` continues a task"
)
_RESTART = "`claudomator restart TASK` runs a task again"
_SHOW = "`claudomator show TASK` shows a task, and `claudomator result TASK` prints its result"
_LOGS = "`claudomator logs TASK` prints what a run wrote, and `claudomator logs -f TASK` follows it"
_DIFF = (
    "`claudomator diff TASK` shows what a task changed, `claudomator merge TASK` merges its branch, and "
    "`claudomator show TASK` names the directory in which it works: use git there"
)
_VALIDATE = "`claudomator validate FILE` checks task files, and `claudomator doctor` the set-up"
_DOCTOR = "`claudomator doctor` checks the set-up"
_INIT = "`claudomator init` writes a configuration, and `claudomator doctor` checks it"
_OPEN = "`claudomator open` prints a link to the page"
_PACKAGE = "pip does that: see docs/how-to/upgrade.md"
_UNDO = "`claudomator discard TASK` removes the branch of a task, and `claudomator diff TASK` shows what it changed"
_COST = "`claudomator report` sums what was spent, `claudomator agents -o wide` by agent and day"
_EDIT = "`claudomator edit TASK` edits a task that waits; or change its file, and save it"

OTHER_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delete", "rm", "remove", "del", "clear", "purge"), _REMOVE),
    **dict.fromkeys(("kill", "stop", "abort", "terminate", "quit", "end", "down", "shutdown", "interrupt"), _CANCEL),
    **dict.fromkeys(("ls", "ps", "tasks", "task", "jobs", "queue", "top", "overview", "stat", "st"), _STATUS),
    **dict.fromkeys(("new", "create", "enqueue", "push", "run", "exec", "dispatch", "ask", "do"), _SUBMIT),
    **dict.fromkeys(("start", "daemon", "up", "server", "launch"), _SERVE),
    **dict.fromkeys(("pause", "suspend", "freeze", "disable", "block"), _PAUSE),
    **dict.fromkeys(("resume", "unpause", "continue", "unfreeze", "enable", "unblock", "unhold"), _RESUME),
    **dict.fromkeys(("retry", "rerun", "redo", "again", "requeue"), _RESTART),
    **dict.fromkeys(("info", "describe", "inspect", "get", "view", "cat", "output", "details"), _SHOW),
    **dict.fromkeys(("tail", "follow", "attach", "stdout", "stderr"), _LOGS),
    "changes": "`claudomator diff TASK` shows what its runs changed",
    **dict.fromkeys(("commit", "checkout", "worktree", "branch"), _DIFF),
    **dict.fromkeys(("check", "lint", "test", "verify"), _VALIDATE),
    **dict.fromkeys(("health", "ping", "diagnostics"), _DOCTOR),
    **dict.fromkeys(("config", "configure", "setup", "install"), _INIT),
    **dict.fromkeys(("ui", "web", "dashboard", "page", "browser", "login", "url"), _OPEN),
    **dict.fromkeys(("upgrade", "update"), _PACKAGE),
    "uninstall": "docs/how-to/uninstall.md says what to end and to remove",
    **dict.fromkeys(("undo", "revert", "rollback"), _UNDO),
    **dict.fromkeys(("cost", "costs", "usage", "spend", "spent", "budget", "budgets"), _COST),
    "logout": "`claudomator sessions end` logs a browser out, and `claudomator token revoke` ends a token",
    **dict.fromkeys(("modify", "change", "set"), _EDIT),
    "watch": "`claudomator status --watch` shows everything as it changes",
    **dict.fromkeys(("history", "events", "audit"), "`claudomator log` shows what happened, and who did it"),
    "explain": "`claudomator why TASK` explains why a task is where it is",
    **dict.fromkeys(("reply", "respond", "input"), "`claudomator answer TASK TEXT` answers what an agent asks"),
    **dict.fromkeys(("allow", "accept", "ok", "yes"), "`claudomator approve TASK` allows what a task asks for"),
    **dict.fromkeys(("deny", "refuse", "decline", "no"), "`claudomator reject TASK` refuses what a task asks for"),
    **dict.fromkeys(("schedules", "cron"), "`claudomator schedule list` lists the schedules"),
    **dict.fromkeys(("agent", "models", "accounts", "limits", "quota"), "`claudomator agents` lists the agents"),
    "clean": "`claudomator cleanup` removes what ended tasks no longer need",
    "help": "`claudomator --help` lists the commands",
    "version": "`claudomator --version` prints the version",
}
"""A clause by the word that was typed. It is used only while there is no command of that name."""
