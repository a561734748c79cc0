"""The ledger: what the runs of a site's agent ``sh``, and their checks, have written of themselves."""

from dataclasses import dataclass
from pathlib import Path

# Tells the ledger that it runs, does what the lines "do: ..." of its task say, and tells how it ends.
_AGENT = """
ledger=$1
trap 'code=$?; echo "end $CLAUDOMATOR_RUN $code" >> "$ledger"' EXIT
echo "start $CLAUDOMATOR_RUN $$ $CLAUDOMATOR_ATTEMPT" >> "$ledger"
while IFS= read -r line; do
    case $line in "do: "*) eval "${line#do: }" < /dev/null ;; esac
done
exit 0
"""
_CHECK = 'echo "check $CLAUDOMATOR_RUN $1" >> "$2"; exit "$1"'


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger, written by a run itself.

    what: ``start`` with its pid as the number, ``deaf`` with it once TERM is ignored, ``end`` with its exit code, or
    ``check`` with that of its check.
    """

    what: str
    run_id: str
    number: int


class Ledger:
    """A file, and the scripts beside it that write to it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ledger"
        self._agent = folder / "agent.sh"
        self._check = folder / "check.sh"

    def write_scripts(self) -> None:
        """Make the scripts of the agent and of the check."""
        self._agent.write_text(_AGENT)
        self._check.write_text(_CHECK)

    @property
    def agent(self) -> list[str]:
        """The command of an agent that does as its task says and writes itself into the ledger."""
        return ["sh", str(self._agent), str(self.file)]

    def check(self, code: int = 0) -> str:
        """A check that writes itself into the ledger and exits with the code."""
        return f"sh {self._check} {code} {self.file}"

    def entries(self) -> list[Entry]:
        """All of them, in order."""
        if not self.file.exists():
            return []
        lines = [line.split() for line in self.file.read_text().splitlines()]
        return [Entry(words[0], words[1], int(words[2])) for words in lines]
