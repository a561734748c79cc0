"""The MCP server that each run's CLI is given: how it is started, in words that every CLI takes."""

import sys
from pathlib import Path
from typing import Final

NAME: Final = "claudomator"
"""Of the server. CLIs build the names of its tools from it."""
SECONDS: Final = 600
"""How long a CLI is to wait for a tool, where it can be told: for more than a restart of the daemon takes."""

_INSTALLATION: Final = str(Path(__file__).parents[2])
# Isolated: no site packages, and nothing that a variable could have it import.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from claudomator_py.agents.mcp_server.main import main; sys.exit(main())"
)


def mcp_command(state: Path) -> tuple[str, ...]:
    """The server for runs of the daemon with that state folder. It holds no secret: the run's token is in its
    environment, see ``domain.run.MCP_VARIABLES``.
    """
    return (sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _INSTALLATION, str(state))
