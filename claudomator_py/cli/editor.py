"""The user's editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from claudomator_py.cli.output import fail


def in_editor(text: str, name: str) -> str:
    """Return the text after the user has edited it in $VISUAL or $EDITOR, in a file of that name."""
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*words, str(file)], check=False)
        except OSError as failure:
            fail(f"The editor {words[0]} cannot be started: {failure.strerror}.", "Set EDITOR, or name a file.")
        if done.returncode != 0:
            fail(f"The editor {words[0]} ended with {done.returncode}; nothing was changed.")
        return file.read_text(encoding="utf-8", errors="replace")
