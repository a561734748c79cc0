"""Another user of the machine: runs a function with the rights of ``nobody``, for tests of what that user can get at.

Only root can become somebody else, so tests that use it carry ``needs_root``. pytest's own temporary folders are closed
to others, which would prove nothing: ``open_to_all`` makes one that others may enter.
"""

import inspect
import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NOBODY = 65534


# Imports happen first: the interpreter's own folder may be closed to the other user.
_BECOME = """
import encodings.idna, errno, http.client, json, os, signal, socket, stat, sys
from pathlib import Path
source, name, arguments = json.load(sys.stdin)
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
os.chdir("/")
space = dict(globals())
exec(source, space)
json.dump(space[name](*arguments), sys.stdout)
"""


def as_second_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns when the other user calls it.

    It is handed over as source text: a plain function of a module, which uses nothing but its arguments, what it
    imports itself and ``errno, http.client, json, os, signal, socket, stat, sys, Path``. Arguments and result have to
    fit into JSON. Fails with what the function raised.
    """
    request = json.dumps([textwrap.dedent(inspect.getsource(function)), function.__name__, arguments])
    command = [sys.executable, "-I", "-S", "-c", _BECOME.format(user=NOBODY)]
    done = subprocess.run(command, input=request, env={}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A temporary folder that every user may enter and read."""
    folder = Path(tempfile.mkdtemp(prefix="claudomator-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)
