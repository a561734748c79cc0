"""Whether a text that begins with a slash names a command or skill of the agent that gets it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from claudomator_py.domain.handoff import MAX_WORD_LENGTH, SlashText, SlashUse
from claudomator_py.domain.kind import CommandFiles, KindInfo
from claudomator_py.values import dataclass, regex

_NAME = regex(r"[\w-][\w.-]*(?:[:/][\w-][\w.-]*)*")
_MAX_BYTES = 1 << 20
"""Maximum size of a file that is examined; a longer one counts as one that has a shell run."""


@dataclass(frozen=True, slots=True)
class SlashPlace:
    """Where a run will look for commands."""

    info: KindInfo
    folder: str | None
    """Its working directory; None for a scratch folder."""
    variables: Mapping[str, str]
    fenced: bool
    """Whether it is kept within a reach."""


def slash_text(text: str, place: SlashPlace, *, alone: bool) -> SlashText | None:
    """Return how to give the text; None if it does not begin with a slash or no model reads it. alone: whether the
    prompt says nothing that is not in the text."""
    if not place.info.asks_model or not text.lstrip().startswith("/"):
        return None
    name = text.split(maxsplit=1)[0][1:]
    match = _file_of(name, place) if text.startswith("/") and name not in place.info.own_commands else None
    if match is None:
        return SlashText(name=name[:MAX_WORD_LENGTH], use=SlashUse.UNKNOWN)
    path, files = match
    use = SlashUse.COMMAND if alone else SlashUse.WITH_MORE
    if place.fenced and _runs_shell(path, files):
        use = SlashUse.FENCED
    return SlashText(name=name, use=use, file=_shown(path, place))


def _file_of(name: str, place: SlashPlace) -> tuple[Path, CommandFiles] | None:
    """Return the file that defines the command, with where it was looked for."""
    if len(name) > MAX_WORD_LENGTH or not _NAME.fullmatch(name):
        return None
    for files in place.info.commands:
        if any(mark in name for mark in ":/" if mark != files.separator):
            continue
        relative = name.replace(":", "/")
        for base in _bases(files, place):
            for pattern in files.patterns:
                path = base / pattern.format(relative)
                if path.is_file():
                    return path, files
    return None


def _bases(files: CommandFiles, place: SlashPlace) -> Iterator[Path]:
    """Yield the folders to look in: of the working directory, of those above it in its repository, of the home."""
    if place.folder is not None:
        folder = Path(place.folder)
        above = list(folder.parents) if files.looks_above else []
        top = next((at for at, parent in enumerate((folder, *above)) if (parent / ".git").exists()), 0)
        for parent in (folder, *above)[: top + 1]:
            yield parent / files.folder
    moved, home = place.variables.get(files.variable), place.variables.get("HOME")
    if moved:
        yield Path(moved) / files.moved_folder
    elif home:
        yield Path(home) / (files.home_folder or files.folder)


def _runs_shell(path: Path, files: CommandFiles) -> bool:
    """Return whether the file may have a shell run before a model is asked."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError:
        return True
    return len(text) > _MAX_BYTES or any(mark in text for mark in files.shell_marks)


def _shown(path: Path, place: SlashPlace) -> str:
    """Return the path, short where it is in the working directory or the home."""
    for base, prefix in ((place.folder, ""), (place.variables.get("HOME"), "~/")):
        if base and path.is_relative_to(base):
            return f"{prefix}{path.relative_to(base)}"
    return str(path)
