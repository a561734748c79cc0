"""File system events of the inbox folders, as hints on where to look. The periodic rescan finds what they miss.

Uses inotify directly: names may contain any bytes, and the kernel reports when it had to drop events.
"""

import ctypes
import errno
import logging
import os
import select
import struct
import threading
from collections.abc import Callable, Iterable, Iterator

IN_ATTRIB = 0x0000_0004
IN_CLOSE_WRITE = 0x0000_0008
IN_MOVED_FROM = 0x0000_0040
IN_MOVED_TO = 0x0000_0080
IN_CREATE = 0x0000_0100
IN_DELETE = 0x0000_0200
IN_DELETE_SELF = 0x0000_0400
IN_MOVE_SELF = 0x0000_0800
IN_UNMOUNT = 0x0000_2000
IN_Q_OVERFLOW = 0x0000_4000
IN_IGNORED = 0x0000_8000
IN_ONLYDIR = 0x0100_0000

# Events that make a name worth examining. Not each write, as a writer eventually closes the file.
_NAMES = IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
# Events of the folder itself: the watch may be attached to something that is no longer at the path.
_FOLDER = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the padded name
_READ_BYTES = 2**16

log = logging.getLogger("claudomator.inbox")


class Watcher:
    """Watches some folders, without subfolders, from a thread of its own.

    on_names: called with a folder, as it was given, and the names in it that changed, in order. on_lost: called with
    folders that must be surveyed completely, and whether the watch must be set again because one of them was moved or
    deleted. Exceptions from either are logged, and end nothing.
    """

    def __init__(
        self,
        folders: Iterable[str],
        on_names: Callable[[str, Iterable[str]], None],
        on_lost: Callable[[set[str], bool], None],
    ) -> None:
        """The watch is set on return. Raises OSError if the system's limit on watches is reached."""
        self._on_names = on_names
        self._on_lost = on_lost
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "")
        self._stop_read = self._stop_write = -1
        try:
            self._folders = {self._add(folder): folder for folder in folders}
            self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._run, name="claudomator-inbox-watch", daemon=True)
            self._thread.start()
        except BaseException:
            self._close_all()
            raise

    @property
    def alive(self) -> bool:
        """True if events can still arrive."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop watching. Idempotent. Do not call from within ``on_names`` or ``on_lost``."""
        if self._stop_write < 0:
            return
        os.write(self._stop_write, b"x")
        self._thread.join(timeout=10)
        if not self._thread.is_alive():
            self._close_all()

    def _add(self, folder: str) -> int:
        mask = _NAMES | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
        return self._checked(self._libc.inotify_add_watch(self._fd, os.fsencode(folder), mask), folder)

    def _checked(self, result: int, folder: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            limited = {errno.EMFILE: "fs.inotify.max_user_instances", errno.ENOSPC: "fs.inotify.max_user_watches"}
            why = f"the limit {limited[number]} is reached" if number in limited else os.strerror(number)
            raise OSError(number, why, folder)
        return result

    def _close_all(self) -> None:
        for fd in (self._fd, self._stop_read, self._stop_write):
            if fd >= 0:
                os.close(fd)
        self._fd = self._stop_read = self._stop_write = -1

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._stop_read, select.POLLIN)
        while True:
            try:
                if any(fd == self._stop_read for fd, _ in poll.poll()):
                    return
                self._hand_on(os.read(self._fd, _READ_BYTES))
            except BlockingIOError:
                continue
            except OSError:
                log.exception("watching the folder failed; files are found by the rescan until the watch is set again")
                return

    def _hand_on(self, data: bytes) -> None:
        changed: dict[str, dict[str, None]] = {}  # in order
        lost: set[str] = set()
        set_again = False
        for watch, mask, name in _events(data):
            if mask & IN_Q_OVERFLOW:
                log.warning("so much happened in the inbox that events were lost: looking at everything")
                lost.update(self._folders.values())
                continue
            folder = self._folders.get(watch)
            if folder is None:
                continue
            if mask & _FOLDER:
                lost.add(folder)
                set_again = True
            elif name:
                changed.setdefault(folder, {})[name] = None
            else:  # the permissions of the folder itself
                lost.add(folder)
        try:
            for folder, names in changed.items():
                self._on_names(folder, names)
            if lost:
                self._on_lost(lost, set_again)
        except Exception:
            log.exception("passing on what happened in the inbox failed; the rescan finds it")


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Watch, mask and name of each event written by the kernel."""
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length
