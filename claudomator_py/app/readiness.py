"""The readiness checks, gathered into one list from everything that can report trouble."""

from collections.abc import Callable, Sequence
from pathlib import Path

from claudomator_py.app.assemble import Components
from claudomator_py.app.configured import Configured
from claudomator_py.app.in_force import Folders, agents_check
from claudomator_py.daemon import calibrations
from claudomator_py.daemon.health import card_folder_checks, disk_check, inbox_checks, trouble_check
from claudomator_py.domain.health import CheckView
from claudomator_py.faults import ItemFault
from claudomator_py.faults import checks as fault_checks
from claudomator_py.schema.routing_settings import Preset
from claudomator_py.store import specialist_rows
from claudomator_py.store.database import Database, StoreUnavailable
from claudomator_py.workers import Worker


def faults_of(daemon: Components) -> list[ItemFault]:
    """Return the repeated failures of the ticks and of the schedule and retention threads."""
    held = (daemon.surroundings.faults, daemon.arrivals.schedule_faults, daemon.background.retention_faults)
    return [fault for faults in held for fault in faults.all()]


def readiness_checks(
    daemon: Components,
    folders: Folders,
    state: Path,
    loop: Callable[[], Sequence[CheckView]],
    configuration: Callable[[], CheckView],
    workers: Callable[[], Sequence[Worker]],
) -> list[CheckView]:
    """Return all checks. state: the state folder; loop: returns the loop's own checks."""
    around = daemon.surroundings
    current = around.current()
    return [
        *loop(),
        *fault_checks(faults_of(daemon)),
        configuration(),
        disk_check(state, current.settings.limits.min_free),
        agents_check(around.registry, configured=current.settings.agents_configured),
        *_calibration_checks(current, around.database),
        *_trouble_checks(current),
        *inbox_checks(folders.tasks.status()),
        *card_folder_checks(folders.cards.status()),
        *(check for worker in workers() if (check := worker.check()) is not None),
    ]


def _trouble_checks(current: Configured) -> list[CheckView]:
    """Whether the encoder and the classifier answered when last asked. Nothing waits for either."""
    return [
        *trouble_check(
            "encoder",
            None if current.decider is None else current.decider.trouble,
            "words alone are compared, and tasks are routed by them",
            "see routing.encoder; it is asked again with the next task",
        ),
        *trouble_check(
            "classifier",
            None if current.cheap_model is None else current.cheap_model.trouble,
            "agents run with their default tier",
            "see classifier; it is asked again with the next task",
        ),
    ]


def _calibration_checks(current: Configured, database: Database) -> list[CheckView]:
    """Whether the thresholds still apply to the encoder in use."""
    if current.directory is None or current.settings.routing.preset is not Preset.CALIBRATED:
        return []
    try:
        cards = database.read(specialist_rows.content_hashes)
    except StoreUnavailable:  # which has a check of its own
        return []
    return calibrations.checks(current.directory.encoder.id, current.fitted, cards)
