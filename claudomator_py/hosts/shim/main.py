"""One run, from its start to its exit record."""

from __future__ import annotations

import errno
import os
import sys
import time

from claudomator_py.hosts.shim import crash as crash_points
from claudomator_py.hosts.shim import linux, procfs, record, workdir
from claudomator_py.hosts.shim.builtin import loads
from claudomator_py.hosts.shim.crash import crash
from claudomator_py.hosts.shim.linux import spawn
from claudomator_py.hosts.shim.output import STDERR, STDOUT, CappedOutput, disk_is_full
from claudomator_py.hosts.shim.record import ExitFields
from claudomator_py.hosts.shim.spec import BadSpec, Spec, load
from claudomator_py.hosts.shim.stop import end_all, kill_children
from claudomator_py.hosts.shim.watch import Deadline, SignalEvents, Watch

TYPE_CHECKING = False
"""True for the type checker. ``typing`` has the same, but its import takes longer than all others here."""
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudomator_py.hosts.shim.clone import Clone

PROMPT = "prompt.md"
LOG = "shim.log"

ENDED = 0
CLEAN = 1
LEFT = 3
BROKEN = 4

_RECORD_PAUSE_S = 1.0
_DISK_ERRORS = (errno.EROFS, errno.EIO, errno.ESTALE, errno.ENOSPC, errno.EDQUOT)
_MAX_STRIKES = 50
"""How often a process that keeps forking is struck at before the next walk through /proc."""


def main() -> None:
    """Supervise the run whose directory is the first argument, and exit with ENDED, LEFT or BROKEN."""
    sys.exit(_run_alone(dict(os.environ)))


def main_with_input() -> None:
    """Run as ``main``, with the agent's variables as JSON on standard input; they are not in this process's own
    environment."""
    # Descriptors inherited from whoever started the daemon. Those opened here are closed in the agent by the kernel.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    with open(0, "rb", closefd=False) as file:
        environ = loads(file.read())
    sys.exit(_run_alone(environ))


def main_with_file() -> None:
    """Run as ``main``, with the agent's variables in a file of the run directory: an engine stores and shows the
    variables that it is given."""
    sys.exit(_run_alone(None))


def _run_alone(environ: dict[str, str] | None) -> int:
    code = run(sys.argv[1], environ, detach())
    return ENDED if code == CLEAN else code


def detach() -> SignalEvents:
    """Detach this process: its own session, subreaper of all descendants, no terminal, no working directory in use."""
    try:
        os.setsid()
    except PermissionError:
        pass  # It already leads a session.
    crash("session-made")
    linux.become_subreaper()
    crash("subreaper-set")
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)
    return SignalEvents()


def run(
    path: str, environ: dict[str, str] | None, events: SignalEvents, report: Callable[[], None] | None = None
) -> int:
    """Supervise the run in that directory. environ: source of the agent's variables; None: see
    ``record.take_variables``. events: from ``detach``.

    report: called if the result will be CLEAN, once the record is written and the lock released. The record is flushed
    after that: the daemon on this machine can read it already, and stores the result durably itself.

    A run that was started is never started again; if its shim was killed and its agent is alive, the agent is taken
    over. Returns ENDED if the run has ended, or CLEAN if it ended by itself and left no process and no open file, so
    that this process can have another run. Returns LEFT if the run must not be started, or not by this process, and
    BROKEN after a fault of the shim itself or if the directory was removed: then everything was ended, and no exit
    status is invented.
    """
    crash_points.arm(None if environ is None else environ.get(crash_points.VARIABLE))
    if events.interrupted:
        return LEFT
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return LEFT
    lock = record.take_lock(directory)
    if lock is None:
        return LEFT
    orphan = record.orphan(directory)
    if orphan is None and record.given_up(directory):
        return LEFT
    elsewhere = environ is None
    if environ is None:
        try:
            environ = record.take_variables(directory)
        except (OSError, ValueError):
            return LEFT
    supervisor = Supervisor(directory, environ, events, elsewhere=elsewhere)
    try:
        code = supervisor.run() if orphan is None else supervisor.take_over(orphan)
        if code == CLEAN and report is not None:
            os.close(lock)
            report()
        supervisor.flush()
    except Exception as fault:
        _log_fault(directory, fault)
        supervisor.end_everything(grace=0)
        return BROKEN
    if code == CLEAN:
        os.close(directory)
    return code


class CommandStage:
    """What the commands of a run have in common: directory, environment and output."""

    def __init__(self, directory: int, spec: Spec, environ: dict[str, str]) -> None:
        """Open the directory and the output files. Raises OSError, NotAllowed."""
        self._directory = directory
        self._cwd, real = workdir.open_checked(spec.cwd, spec.bounds)
        crash("cwd-opened")
        for folder in spec.folders:
            workdir.check_further(folder, spec.folder_bounds)
        self.outputs = [CappedOutput(directory, name, spec.output_bytes) for name in (STDOUT, STDERR)]
        crash("output-opened")
        self._env = {name: environ[name] for name in spec.env_names if name in environ}
        self._env["PWD"] = real
        self._env[procfs.RUN_VARIABLE] = spec.run_id

    def spawn(self, argv: list[str]) -> int:
        """Start a command, with the prompt on its standard input. Returns its pid. Raises OSError."""
        stdin = os.open(PROMPT, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory)
        try:
            return spawn(argv, self._env, self._cwd, (stdin, self.outputs[0].fd, self.outputs[1].fd))
        finally:
            os.close(stdin)

    def close(self) -> None:
        """Close what was opened."""
        os.close(self._cwd)
        for output in self.outputs:
            os.close(output.fd)


def finish_outputs(outputs: list[CappedOutput]) -> None:
    """Trim the final output to its limit, and restore the files if they were removed."""
    for output in outputs:
        output.grew()
        output.within_cap()
        try:
            output.put_back()
        except OSError:
            continue  # Without space for it the run has ended all the same.


class Supervisor:
    """Starts the commands, enforces the limits and ends all remaining processes."""

    def __init__(
        self, directory: int, environ: dict[str, str], events: SignalEvents, *, elsewhere: bool = False
    ) -> None:
        """elsewhere: an engine has started this process, so that it may have to clone the work tree; see ``clone``."""
        self._directory = directory
        self._environ = environ
        self._events = events
        self._elsewhere = elsewhere
        self._run_id = ""
        self._since = procfs.Beginning(0)
        self._agent = 0
        self._status: int | None = None
        self._exit_file: record.ExitFile | None = None

    def run(self) -> int:
        """Run the protocol. The lock is held, and the run is not revoked."""
        try:
            self._exit_file = record.ExitFile(self._directory)
        except OSError:
            return LEFT  # Nothing was started, as the daemon will see.
        ending, clone = ExitFields(), None
        try:
            self._write_identity()
            record.claim_start(self._directory)
            spec = load(self._directory)
            self._run_id = spec.run_id
            if self._elsewhere and record.exists(self._directory, record.CLONE):
                clone = self._cloned(spec)
            stage = CommandStage(self._directory, spec, self._environ)
        except (BadSpec, workdir.NotAllowed) as problem:
            ending.error = str(problem)
            ending.ended_by = getattr(problem, "ended_by", None)
        except OSError as problem:
            ending.error = _words(problem)
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                ending.ended_by = "disk_full"
        else:
            self._work(spec, stage, ending)
            ending.stragglers = self.end_everything(spec.grace)
            if record.is_gone(self._directory):
                return BROKEN
            if clone is not None:
                if ending.ended_by is None and ending.exit_code != 0 and clone.is_full:
                    ending.ended_by = "disk_full"
                clone.end()
            finish_outputs(stage.outputs)
            stage.close()
        crash("stragglers-ended")
        ending.ended_ms = ending.ended_ms or record.now_ms()
        self._record(self._exit_file, ending)
        left = ending.error or ending.ended_by or ending.stragglers or self._events.interrupted
        return ENDED if left else CLEAN

    def take_over(self, agent: procfs.Process) -> int:
        """Supervise an agent whose shim was killed, until it ends. The lock is held. Only its parent would learn its
        exit status, so an exit record is written only if it is ended here. Raises BadSpec, OSError."""
        self._write_identity()
        # Processes started by the previous shim are older, and not necessarily descendants of the agent.
        self._since = procfs.Beginning(0)
        spec = load(self._directory)
        self._run_id = spec.run_id
        outputs = [CappedOutput(self._directory, name, spec.output_bytes) for name in (STDOUT, STDERR)]
        watch = Watch(self._directory, spec, outputs, self._events, agent)
        ending = ExitFields()
        ending.started_ms -= round(procfs.age(agent) * 1000)
        pidfd = procfs.open_pidfd(agent.pid, agent.start)
        if pidfd is not None:
            self._events.wake_at_end_of(pidfd)
        while procfs.is_same(agent.pid, agent.start):
            ending.ended_by = watch.ending()
            if ending.ended_by:
                break
            self._events.wait(watch.pause())
        crash("orphan-ended")
        ending.ended_ms = record.now_ms()
        ending.stragglers = self.end_everything(spec.grace)
        if record.is_gone(self._directory):
            return BROKEN
        finish_outputs(outputs)
        if ending.ended_by:
            self._exit_file = record.ExitFile(self._directory)
            self._record(self._exit_file, ending)
        return ENDED

    def _record(self, file: record.ExitFile, ending: ExitFields) -> None:
        """Write the exit record. A disk that is read-only or away for a while is waited for, because nobody else knows
        the end. Raises OSError for other faults, if the directory was removed, or if this process is told to stop."""
        while True:
            try:
                return file.write(ending)
            except OSError as problem:
                is_lasting = problem.errno not in _DISK_ERRORS
                if is_lasting or self._events.interrupted or record.is_gone(self._directory):
                    raise
            time.sleep(_RECORD_PAUSE_S)

    def flush(self) -> None:
        """Make the exit record durable, if there is one. Raises OSError."""
        if self._exit_file is not None:
            self._exit_file.flush()

    def _cloned(self, spec: Spec) -> Clone:
        """Create the work tree on this node and make it the working directory. Raises NotAllowed, OSError."""
        from claudomator_py.hosts.shim.clone import Clone  # few runs have one

        environ = {name: self._environ[name] for name in spec.env_names if name in self._environ}
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

        def git(argv: list[str], variables: dict[str, str], output: int, deadline: Deadline) -> ExitFields:
            fields = ExitFields()
            pid = spawn(argv, variables, self._directory, (null, output, output))
            self._follow(pid, spec, deadline, fields)
            return fields

        try:
            clone = Clone(self._directory, environ, git)
        except (ValueError, KeyError) as problem:
            raise BadSpec(f"{record.CLONE} cannot be used: {problem}") from problem
        clone.begin(Watch(self._directory, spec, [], self._events).ending)
        spec.cwd, spec.bounds = clone.place, workdir.WorkdirBounds([clone.folder], [])
        return clone

    def _write_identity(self) -> None:
        """Raises OSError."""
        process = procfs.read(os.getpid())
        if process is None:
            raise OSError(errno.ENOENT, "there is no /proc")
        self._since = procfs.Beginning(process.start, now=True)
        record.write_shim(self._directory, process)

    def _work(self, spec: Spec, stage: CommandStage, ending: ExitFields) -> None:
        """Run the commands in order, up to the first that does not exit with 0 or is ended by a limit."""
        watch = Watch(self._directory, spec, stage.outputs, self._events)
        for step, argv in enumerate(spec.commands):
            ending.ended_by = watch.ending()
            if ending.ended_by:
                return
            ending.step = step
            try:
                pid = stage.spawn(argv)
            except OSError as problem:
                ending.exit_code = None
                ending.error = f"{argv[0]} cannot be started: {problem.strerror}"
                return
            try:
                record.write_agent(self._directory, pid)
            except OSError:
                pass  # It runs all the same; only a take-over would be impossible.
            self._follow(pid, spec, watch, ending)
            if ending.ended_by or ending.exit_code != 0:
                return

    def _follow(self, pid: int, spec: Spec, watch: Watch | Deadline, ending: ExitFields) -> None:
        self._agent, self._status = pid, None
        while not self._agent_ended():
            ending.ended_by = watch.ending()
            if ending.ended_by:
                self.end_everything(spec.grace)
                break
            self._events.wait(watch.pause())
        while not self._agent_ended():
            self._events.wait(1)
        ending.exit_code = self._status
        ending.ended_ms = record.now_ms()
        crash("agent-ended")
        if ending.ended_by is None and ending.exit_code != 0 and disk_is_full(self._directory):
            ending.ended_by = "disk_full"

    def end_everything(self, grace: float) -> int:
        """End every process of the run. Return their number."""
        return end_all(self._members, grace, self._pause, none_left=self._none_left).signalled

    def _none_left(self) -> bool:
        """Return whether this process has no descendants. As a subreaper it adopts every orphaned descendant, so it has
        none if it has no children. Kills remaining children, which the walk through /proc has missed."""
        for _ in range(_MAX_STRIKES):
            if not self._reap():
                return True
            kill_children()
        return False

    def _members(self) -> list[procfs.Process]:
        if not self._reap() and self._run_id and not procfs.is_carried(self._run_id, self._since):
            return []  # The usual case. This check takes half as long as listing processes.
        processes = procfs.snapshot()
        by_pid = {process.pid: process for process in procfs.descendants([os.getpid()], processes)}
        if self._run_id:
            for process in procfs.of_run(self._run_id, processes):
                by_pid[process.pid] = process
        return [process for process in by_pid.values() if process.alive]

    def _pause(self, seconds: float) -> None:
        self._events.wait(seconds)

    def _agent_ended(self) -> bool:
        self._reap()
        return self._status is not None

    def _reap(self) -> bool:
        """Reap every child that has ended: the agent and adopted orphans. Return whether there are children left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._agent:
                self._agent, self._status = 0, os.waitstatus_to_exitcode(status)


def _words(problem: OSError) -> str:
    """Return the error for people: with the path, without the error number."""
    message = problem.strerror or str(problem)
    return message if problem.filename is None else f"{os.fsdecode(problem.filename)}: {message}"


def _log_fault(directory: int, fault: Exception) -> None:
    """Write the traceback to the run's ``shim.log``."""
    try:
        fd = os.open(
            LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory
        )
        os.dup2(fd, 2)
    except OSError:
        return
    sys.excepthook(type(fault), fault, fault.__traceback__)
