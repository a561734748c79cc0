"""The tables. Times are epoch milliseconds; JSON columns hold values of ``domain`` as pydantic dumps them.
Columns that people may see are of the types of ``store.shown``: what is written to them is without secrets.

State, counts and limits are always queried from these rows; nothing is counted up and down.
"""

from sqlmodel import SQLModel

from claudomator_py.store.tables.channels import Channel, ChannelAnswer, ChannelMember, ChannelMessage
from claudomator_py.store.tables.decisions import Classification, Decision, Hold, Snapshot, TierAnswer
from claudomator_py.store.tables.service import (
    AnsweredRequest,
    ApiToken,
    BrowserSession,
    Outbox,
    OutboxCursor,
    Remembered,
    Switch,
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
from claudomator_py.store.tables.tasks import LANE, Event, Run, Task, TaskDependency, TaskRevision

TASK = SQLModel.metadata.tables["task"]
TASK_REVISION = SQLModel.metadata.tables["task_revision"]
TASK_DEPENDENCY = SQLModel.metadata.tables["task_dependency"]
RUN = SQLModel.metadata.tables["run"]
EVENT = SQLModel.metadata.tables["event"]
SNAPSHOT = SQLModel.metadata.tables["snapshot"]
DECISION = SQLModel.metadata.tables["decision"]
HOLD = SQLModel.metadata.tables["hold"]
SCHEDULE = SQLModel.metadata.tables["schedule"]
SCHEDULE_FIRE = SQLModel.metadata.tables["schedule_fire"]
INBOX_FILE = SQLModel.metadata.tables["inbox_file"]
INBOX_DOCUMENT = SQLModel.metadata.tables["inbox_document"]
CLASSIFICATION = SQLModel.metadata.tables["classification"]
TIER_ANSWER = SQLModel.metadata.tables["tier_answer"]
ANSWERED_REQUEST = SQLModel.metadata.tables["answered_request"]
SWITCH = SQLModel.metadata.tables["switch"]
OUTBOX = SQLModel.metadata.tables["outbox"]
OUTBOX_CURSOR = SQLModel.metadata.tables["outbox_cursor"]
API_TOKEN = SQLModel.metadata.tables["api_token"]
BROWSER_SESSION = SQLModel.metadata.tables["browser_session"]
REMEMBERED = SQLModel.metadata.tables["remembered"]
SPECIALIST = SQLModel.metadata.tables["specialist"]
SPECIALIST_SKILL = SQLModel.metadata.tables["specialist_skill"]
SPECIALIST_GRANT = SQLModel.metadata.tables["specialist_grant"]
EMBEDDING = SQLModel.metadata.tables["embedding"]
LABEL = SQLModel.metadata.tables["label"]
STANDING = SQLModel.metadata.tables["standing"]
CHANNEL = SQLModel.metadata.tables["channel"]
CHANNEL_MEMBER = SQLModel.metadata.tables["channel_member"]
CHANNEL_MESSAGE = SQLModel.metadata.tables["channel_message"]
CHANNEL_ANSWER = SQLModel.metadata.tables["channel_answer"]

__all__ = [
    "ANSWERED_REQUEST",
    "API_TOKEN",
    "BROWSER_SESSION",
    "CHANNEL",
    "CHANNEL_ANSWER",
    "CHANNEL_MEMBER",
    "CHANNEL_MESSAGE",
    "CLASSIFICATION",
    "DECISION",
    "EMBEDDING",
    "EVENT",
    "HOLD",
    "INBOX_DOCUMENT",
    "INBOX_FILE",
    "LABEL",
    "LANE",
    "OUTBOX",
    "OUTBOX_CURSOR",
    "REMEMBERED",
    "RUN",
    "SCHEDULE",
    "SCHEDULE_FIRE",
    "SNAPSHOT",
    "SPECIALIST",
    "SPECIALIST_GRANT",
    "SPECIALIST_SKILL",
    "STANDING",
    "SWITCH",
    "TASK",
    "TASK_DEPENDENCY",
    "TASK_REVISION",
    "TIER_ANSWER",
    "AnsweredRequest",
    "ApiToken",
    "BrowserSession",
    "Channel",
    "ChannelAnswer",
    "ChannelMember",
    "ChannelMessage",
    "Classification",
    "Decision",
    "Embedding",
    "Event",
    "Hold",
    "InboxDocument",
    "InboxFile",
    "Label",
    "Outbox",
    "OutboxCursor",
    "Remembered",
    "Run",
    "Schedule",
    "ScheduleFire",
    "Snapshot",
    "Specialist",
    "SpecialistGrant",
    "SpecialistSkill",
    "Standing",
    "Switch",
    "Task",
    "TaskDependency",
    "TaskRevision",
    "TierAnswer",
]
