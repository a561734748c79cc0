"""What runs have written, as typed calls: bytes, text, or what the agent said and did; at once, or until the end."""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

from claudomator_py.client.errors import UnexpectedAnswer
from claudomator_py.client.streams import PATIENCE_S
from claudomator_py.client.transport import VERSIONS, Transport, path_segment
from claudomator_py.domain.run import Stream
from claudomator_py.resources.runs.shape import LogChunk, LogEntryView, LogTextView

_LOG_BYTES: Final = 256 * 1024


class RunLogs(Transport):
    """The logs of runs. Every call may raise ``client.errors.ClientError``."""

    def log(
        self,
        run_id: str,
        stream: Stream = "stdout",
        offset: int = 0,
        limit: int = _LOG_BYTES,
        *,
        check: bool = False,
    ) -> LogChunk:
        """Bytes of what the run wrote, from ``offset``. check: of what its check wrote."""
        query = _log_query(stream, check=check) | {"offset": offset, "limit": limit}
        response = self._request("GET", f"/v1/runs/{path_segment(run_id)}/log", params=query)
        try:
            following = int(response.headers["Claudomator-Next-Offset"])
            ended = {"true": True, "false": False}[response.headers["Claudomator-Ended"]]
        except (KeyError, ValueError) as error:
            raise UnexpectedAnswer(f"{self.base_url} sent a log without its offsets.", remedy=VERSIONS) from error
        return LogChunk(response.content, offset, following, ended)

    def follow_text(
        self, run_id: str, stream: Stream = "stdout", *, check: bool = False, patience_s: float = PATIENCE_S
    ) -> Generator[str, None, None]:
        """What the run writes, or its check, as text for people, until the run ends. It outlasts restarts of the
        daemon."""
        for kind, data in self._follow(
            f"/v1/runs/{path_segment(run_id)}/log", _log_query(stream, check=check), patience_s
        ):
            if kind == "end":
                return
            if kind == "output":
                yield self._valid(LogTextView, data).text

    def follow_log(
        self, run_id: str, stream: Stream = "stdout", *, check: bool = False, patience_s: float = PATIENCE_S
    ) -> Generator[LogEntryView, None, None]:
        """What the agent says and does, or its check writes, until the run ends. It outlasts restarts of the daemon."""
        query = _log_query(stream, check=check) | {"view": "structured"}
        for kind, data in self._follow(f"/v1/runs/{path_segment(run_id)}/log", query, patience_s):
            if kind == "end":
                return
            if kind == "entry":
                yield self._valid(LogEntryView, data)

    def log_entries(self, run_id: str, stream: Stream = "stdout", *, check: bool = False) -> Iterator[LogEntryView]:
        """What the agent has said and done by now, or its check has written."""
        for page in self._log_pages(run_id, _log_query(stream, check=check) | {"view": "structured"}):
            yield from (self._valid(LogEntryView, item) for item in page)

    def log_text(self, run_id: str, stream: Stream = "stdout", *, check: bool = False) -> Iterator[str]:
        """What the run has written by now, or its check, as text for people."""
        for page in self._log_pages(run_id, _log_query(stream, check=check) | {"view": "text"}):
            yield from (self._valid(LogTextView, item).text for item in page)

    def _log_pages(self, run_id: str, query: dict[str, object]) -> Iterator[Sequence[object]]:
        cursor = "0"
        while True:
            params = {**query, "cursor": cursor}
            page = self._request("GET", f"/v1/runs/{path_segment(run_id)}/log", params=params).json()
            yield page["items"]
            if page["ended"] or page["next_cursor"] == cursor:
                return
            cursor = page["next_cursor"]


def _log_query(stream: Stream, *, check: bool) -> dict[str, object]:
    """Which output. An older daemon refuses what it does not know, so the agent's is asked for as ever."""
    return {"stream": stream, "check": "true"} if check else {"stream": stream}
