"""Programs of ours that runs start: isolated, with the standard library alone, so that they start fast.

The MCP server that each run's CLI is given is one; how it is started is told in words that every CLI takes.
"""

import sys
from pathlib import Path
from typing import Final

MCP_NAME: Final = "claudomator"
"""Of the MCP server. CLIs build the names of its tools from it."""
MCP_SECONDS: Final = 600
"""How long a CLI is to wait for a tool, where it can be told: for more than a restart of the daemon takes."""

_INSTALLATION: Final = str(Path(__file__).parents[2])
# Isolated: no site packages, and nothing that a variable could have it import.
_ISOLATED: Final = ("-I", "-S", "-X", "utf8", "-c")


def own_program(module: str) -> tuple[str, ...]:
    """Return the command that runs ``main`` of that module of ours; its arguments follow."""
    code = f"import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; sys.exit(main())"
    return (sys.executable, *_ISOLATED, code, _INSTALLATION)


def mcp_command(state: Path) -> tuple[str, ...]:
    """Return the server for runs of the daemon with that state folder. It holds no secret: the run's token is in its
    environment, see ``domain.run.MCP_VARIABLES``.
    """
    return (*own_program("claudomator_py.agents.mcp_server.main"), str(state))
