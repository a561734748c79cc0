"""The tables. Times are epoch milliseconds; JSON columns hold shapes of ``domain`` as pydantic dumps them. Columns that
people may see have types of ``store.stored_json`` that remove secrets.

States, counts and limits are always queried from these rows; there are no counters to keep in step.
"""

from claudomator_py.store import sqlmodel_alone  # noqa: F401 - before SQLModel is imported
from claudomator_py.store.tables.channels import Channel, ChannelAnswer, ChannelMember, ChannelMessage
from claudomator_py.store.tables.decisions import ClassificationRow, Decision, HoldRow, SnapshotRow, TierAnswer
from claudomator_py.store.tables.service import (
    AnsweredRequest,
    ApiToken,
    BrowserSession,
    Outbox,
    OutboxCursor,
    Remembered,
    SwitchRow,
)
from claudomator_py.store.tables.sources import InboxDocument, InboxFile, Schedule, ScheduleFire
from claudomator_py.store.tables.specialists import (
    Embedding,
    Label,
    Specialist,
    SpecialistGrant,
    SpecialistSkill,
    Standing,
)
from claudomator_py.store.tables.tasks import LANE, SETTLED, Event, Run, Task, TaskDependency, TaskRevision

TASK = Task.table
TASK_REVISION = TaskRevision.table
TASK_DEPENDENCY = TaskDependency.table
RUN = Run.table
EVENT = Event.table
SNAPSHOT = SnapshotRow.table
DECISION = Decision.table
HOLD = HoldRow.table
SCHEDULE = Schedule.table
SCHEDULE_FIRE = ScheduleFire.table
INBOX_FILE = InboxFile.table
INBOX_DOCUMENT = InboxDocument.table
CLASSIFICATION = ClassificationRow.table
TIER_ANSWER = TierAnswer.table
ANSWERED_REQUEST = AnsweredRequest.table
SWITCH = SwitchRow.table
OUTBOX = Outbox.table
OUTBOX_CURSOR = OutboxCursor.table
API_TOKEN = ApiToken.table
BROWSER_SESSION = BrowserSession.table
REMEMBERED = Remembered.table
SPECIALIST = Specialist.table
SPECIALIST_SKILL = SpecialistSkill.table
SPECIALIST_GRANT = SpecialistGrant.table
EMBEDDING = Embedding.table
LABEL = Label.table
STANDING = Standing.table
CHANNEL = Channel.table
CHANNEL_MEMBER = ChannelMember.table
CHANNEL_MESSAGE = ChannelMessage.table
CHANNEL_ANSWER = ChannelAnswer.table

__all__ = [
    "ANSWERED_REQUEST", "API_TOKEN", "BROWSER_SESSION", "CHANNEL", "CHANNEL_ANSWER", "CHANNEL_MEMBER",
    "CHANNEL_MESSAGE", "CLASSIFICATION", "DECISION", "EMBEDDING", "EVENT", "HOLD", "INBOX_DOCUMENT", "INBOX_FILE",
    "LABEL", "LANE", "OUTBOX", "OUTBOX_CURSOR", "REMEMBERED", "RUN", "SCHEDULE", "SCHEDULE_FIRE", "SETTLED", "SNAPSHOT",
    "SPECIALIST", "SPECIALIST_GRANT", "SPECIALIST_SKILL", "STANDING", "SWITCH", "TASK", "TASK_DEPENDENCY",
    "TASK_REVISION", "TIER_ANSWER", "AnsweredRequest", "ApiToken", "BrowserSession", "Channel", "ChannelAnswer",
    "ChannelMember", "ChannelMessage", "ClassificationRow", "Decision", "Embedding", "Event", "HoldRow",
    "InboxDocument", "InboxFile", "Label", "Outbox", "OutboxCursor", "Remembered", "Run", "Schedule", "ScheduleFire",
    "SnapshotRow", "Specialist", "SpecialistGrant", "SpecialistSkill", "Standing", "SwitchRow", "Task",
    "TaskDependency", "TaskRevision", "TierAnswer",
]  # fmt: skip
