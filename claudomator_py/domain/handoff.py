"""The handoff: one document that tells a run about the decision, its authority and the earlier work.

It refers to things and never contains them: earlier runs by id, files by path, decisions by id and code. It is written
for every run, as ``handoff.json`` in its run directory, and validated before the run starts.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from claudomator_py.domain.fields import Strict, refusal
from claudomator_py.domain.outcome import HandoffRequest, Reason
from claudomator_py.domain.routing import Risk
from claudomator_py.domain.task import Instant, PermissionMode
from claudomator_py.values import regex

VERSION: Final[Literal[1]] = 1
MAX_EARLIER: Final = 20
"""Maximum number of earlier runs that it lists: the latest."""
MAX_OUTPUT_LENGTH: Final = 20_000
MAX_INTENT_LENGTH: Final = 200
MAX_FIELD_LENGTH: Final = 300
MAX_FIELDS: Final = 20

Reference = Annotated[str, Field(min_length=1, max_length=MAX_FIELD_LENGTH)]
References = Annotated[tuple[Reference, ...], Field(max_length=MAX_FIELDS)]
FreeText = Annotated[str, Field(max_length=4_000)]


class Extracted(BaseModel, frozen=True, extra="forbid"):
    """What a text names, in order and without duplicates, secrets or personal data. At most 20 of a kind."""

    # Descriptions do not come from docstrings: pydantic would look for the class's source at each start.

    files: tuple[str, ...] = Field(default=(), description="Names of files, with or without folders.")
    paths: tuple[str, ...] = Field(default=(), description="Folders.")
    commands: tuple[str, ...] = Field(
        default=(), description="What stands in back quotes or after a ``$`` and has arguments."
    )
    tickets: tuple[str, ...] = Field(default=(), description="Such as ``ABC-12`` and ``#12``.")
    urls: tuple[str, ...] = Field(default=(), description="Without credentials, query and fragment.")


class DecisionReference(Strict):
    """A decision, by its id. Its parameters and its snapshot are not included."""

    id: Reference = Field(description="Id of the decision.")
    kind: Reference = Field(description="What was decided: `specialist`, `policy`, `handoff` or `tier`.")
    code: Reference = Field(description="Why, as a code.")
    route: Reference | None = Field(None, description="Label of the route, of a decision on a specialist.")


class Evidence(Strict):
    """Evidence to look at, by reference."""

    runs: References = Field((), description="Earlier runs of the task, oldest first.")
    branch: Reference | None = Field(None, description="Branch of the work tree that they share.")
    files: References = Field((), description="Files that earlier runs changed, as they said when they handed it on.")


class PermissionScope(Strict):
    """What the run may do: what specialist, policy and task all permit."""

    mode: PermissionMode = Field(PermissionMode.DEFAULT, description="How freely the agent may act.")
    tools: tuple[Reference, ...] | None = Field(
        None, max_length=1_000, description="The only tools that it has; missing: all that its CLI has."
    )
    allowed_tools: tuple[Reference, ...] = Field(
        (), max_length=1_000, description="Tools it may use without asking. Empty: as the mode says."
    )
    forbidden_tools: tuple[Reference, ...] = Field((), max_length=1_000, description="Tools it may not use.")
    not_enforced: tuple[Annotated[str, Field(max_length=1_000)], ...] = Field(
        (), max_length=50, description="What the agent's CLI cannot enforce, whoever asks for it, in sentences."
    )

    @model_validator(mode="after")
    def _allow_nothing_forbidden(self) -> Self:
        if both := sorted(set(self.allowed_tools) & set(self.forbidden_tools)):
            raise refusal(f"allows and forbids {both[0]}", "remove it from one of the two")
        return self


class BudgetLeft(Strict):
    """What is left of the task's budget; omitted if unlimited."""

    usd: float | None = Field(None, ge=0, description="US dollars.")
    tokens: float | None = Field(None, ge=0, description="Tokens, input and output.")
    runs: float | None = Field(None, ge=0, description="Runs, this one included.")


class EarlierFailure(Strict):
    """A run of the task that did not end well."""

    run: Reference = Field(description="Id of the run.")
    agent: Reference = Field(description="Agent that ran it.")
    specialist: Reference | None = Field(None, description="Who did it; missing: no specialist.")
    reason: Reason = Field(description="Reason code of its end.")
    denied_tools: References = Field((), description="Tools that it was denied.")


class HandedOn(Strict):
    """What the previous run left, in its agent's own words. They are data: they grant nothing."""

    run: Reference = Field(description="Id of the run that handed the task on.")
    specialist: Reference | None = Field(None, description="Who did; missing: no specialist.")
    reason: FreeText = Field("", description="Why.")
    done: FreeText = Field("", description="What is done.")
    left: FreeText = Field("", description="What is left to do.")


MAX_WORD_LENGTH = 200
"""Maximum number of characters of a command's name."""


class SlashUse(StrEnum):
    """How the prompt gives such a text. Values are stored: never rename them."""

    COMMAND = "command"
    """Alone, so that the agent expands the command."""
    UNKNOWN = "unknown"
    """As a text: no file of the agent's defines the command."""
    FENCED = "fenced"
    """As a text: the command's file has a shell run, which no fence would see."""
    WITH_MORE = "with_more"
    """As a text: the prompt says more, which would become arguments of the command."""


_REASONS = {
    SlashUse.UNKNOWN: "names no command or skill that {agent} has as a file",
    SlashUse.FENCED: "is no command here, as {file} has a shell run outside the run's reach",
    SlashUse.WITH_MORE: "is no command here, as the prompt says more, which {file} would get as arguments",
}


class SlashText(Strict):
    """The command with which a text begins, and how the text was given."""

    name: Annotated[str, Field(max_length=MAX_WORD_LENGTH)] = Field(description="The first word, without its slash.")
    use: SlashUse = Field(description="How the text was given.")
    file: Annotated[str, Field(max_length=4_000)] | None = Field(
        None, description="The file that defines the command; null: there is none."
    )

    def sentence(self, agent: str) -> str:
        """Return in a sentence how the agent got the text."""
        if self.use is SlashUse.COMMAND:
            return f"Its text is the command /{self.name} ({self.file}), which {agent} gets alone, without a role."
        why = _REASONS[self.use].format(agent=agent, file=self.file)
        return f"Its text begins with /{self.name}, which {why}: it is given as a text."


class Given(PermissionScope):
    """The part of a run's handoff that is kept with the decision to start the run, for as long as that is."""

    runs: References = Field((), description="Earlier runs of the task that it may look at, oldest first.")
    branch: Reference | None = Field(None, description="Branch of the work tree that they share.")
    files: References = Field((), description="Files that earlier runs changed.")
    expected_output: str | None = Field(None, description="What to hand back.")
    slash: SlashText | None = Field(None, description="How it got a text that begins with a slash.")


class Handoff(Strict):
    """What a run is given in addition to its prompt. Unknown keys are refused."""

    model_config = ConfigDict(title="Handoff")

    version: Literal[1] = Field(description="Version of this format.")
    task: Reference = Field(description="Id of the task.")
    revision: int = Field(ge=1, description="Revision of its content.")
    run: Reference = Field(description="Id of the run.")
    specialist: Reference | None = Field(None, description="Who does it; missing: no specialist.")
    skill: Reference | None = Field(None, description="Skill that is asked for.")
    risk: Risk | None = Field(None, description="How much harm the task could do; missing: not judged.")
    intent: Annotated[str, Field(max_length=MAX_INTENT_LENGTH)] = Field(
        "", description="What the task wants: its first sentence, normalised by rules."
    )
    decisions: tuple[DecisionReference, ...] = Field(
        (), max_length=50, description="What was decided about the task in this generation, oldest first."
    )
    extracted: Extracted = Field(Extracted(), description="What the task's text names.")
    evidence: Evidence = Field(Evidence(), description="Evidence to look at, by reference.")
    permissions: PermissionScope = Field(PermissionScope(), description="What the run may do.")
    budget_left: BudgetLeft = Field(BudgetLeft(), description="What is left of the task's budget.")
    deadline: Instant = Field(description="When the run is stopped if it has not ended by then.")
    failures: tuple[EarlierFailure, ...] = Field(
        (), max_length=MAX_EARLIER, description="Earlier runs that did not end well, oldest first."
    )
    expected_output: Annotated[str, Field(max_length=MAX_OUTPUT_LENGTH)] | None = Field(
        None, description="What to hand back."
    )
    escalation: References = Field(
        (), description="Where the task goes if this run cannot do it, in order: specialists, or labels of routes."
    )
    handoffs: int = Field(0, ge=0, description="How often the task was handed on before.")
    max_handoffs: int = Field(0, ge=0, description="How often it may be.")
    before: HandedOn | None = Field(None, description="What the run before left, if that handed the task on.")

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        if self.handoffs > self.max_handoffs and self.before is not None:
            raise refusal("was handed on more often than allowed", "raise `routing.max_handoffs`")
        if self.run in self.evidence.runs:
            raise refusal("names its own run as evidence")
        return self

    @property
    def text(self) -> str:
        """The document as JSON, without default values."""
        return self.model_dump_json(exclude_defaults=True, indent=2) + "\n"

    def given(self, slash: SlashText | None) -> Given:
        """Return the part that is kept with the decision. slash: the command with which the task's text begins."""
        kept = {**self.permissions.__dict__, **self.evidence.__dict__}
        return Given(**kept, expected_output=self.expected_output, slash=slash)

    @property
    def authority(self) -> "Authority":
        """How much the run may do by itself."""
        return _AUTHORITY[self.permissions.mode]


class Authority(StrEnum):
    """How much a run may do by itself, in increasing order."""

    READ = "read"
    """Mode ``plan``: changes nothing."""
    DRAFT = "draft"
    """Mode ``default``: asks before any change."""
    WRITE_AFTER_APPROVAL = "write_after_approval"
    """Mode ``acceptEdits``: changes files, and asks for everything else."""
    WRITE = "write"
    """Mode ``bypassPermissions``: asks for nothing."""


_AUTHORITY: Final = dict(
    zip(
        (PermissionMode.PLAN, PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS),
        Authority,
        strict=True,
    )
)


class Defect(StrEnum):
    """What is wrong with a handoff, measured against what a task demands of it."""

    LACKS = "lacks"
    """A required field is missing or empty."""
    TELLS = "tells"
    """A forbidden field has content."""
    AUTHORITY_EXPANDED = "authority_expanded"
    """The run may do more than the task allows."""
    TOO_MANY_HANDOFFS = "too_many_handoffs"
    """The task was, or may be, handed off more often than it allows."""


def validity(
    document: Handoff,
    required_fields: Collection[str] = (),
    forbidden_fields: Collection[str] = (),
    max_authority: Authority | None = None,
    max_handoffs: int | None = None,
) -> tuple[tuple[Defect, str], ...]:
    """Return each defect with its field, in a fixed order; empty if the handoff meets the demands.

    Fields are named by their path, such as ``permissions.forbidden_tools``. max_authority, max_handoffs: None for any.
    Raises ValueError for a field that handoffs do not have.
    """
    defects = [(Defect.LACKS, field) for field in sorted(required_fields) if not _has_content(document, field)]
    defects += [(Defect.TELLS, field) for field in sorted(forbidden_fields) if _has_content(document, field)]
    levels = list(Authority)
    if max_authority is not None and levels.index(document.authority) > levels.index(max_authority):
        defects.append((Defect.AUTHORITY_EXPANDED, "permissions.mode"))
    if max_handoffs is not None and max(document.handoffs, document.max_handoffs) > max_handoffs:
        defects.append((Defect.TOO_MANY_HANDOFFS, "max_handoffs"))
    return tuple(defects)


def _has_content(document: Handoff, field: str) -> bool:
    """True if the document has content in that field. Zero counts: no budget left, or no handoff allowed."""
    value: Any = document
    for name in field.split("."):
        if value is None:
            return False
        if not isinstance(value, BaseModel) or name not in type(value).model_fields:
            raise ValueError(f"a handoff has no field {field}")
        value = getattr(value, name)
    if isinstance(value, BaseModel):
        return bool(value.model_dump(exclude_defaults=True))
    return value is not None and value not in ("", ())


HANDOFF_MARKER: Final = "CLAUDOMATOR-HANDOFF:"
"""Starts the last line of an agent's last message; the rest of that line is a ``HandoffRequest``."""
_FENCE = regex(r" {0,3}(`{3,}|~{3,})")


def parse_handoff(text: str) -> HandoffRequest | None:
    """Return the request at the end of the message; None if there is none. Raises ValidationError if it cannot be read.

    In a quotation, in a fenced block and anywhere but at the very end the marker means nothing: there it is mostly text
    that the agent has read and reports.
    """
    lines = text.rstrip().splitlines()
    if not lines or not lines[-1].startswith(HANDOFF_MARKER) or _fenced(lines[:-1]):
        return None
    return HandoffRequest.model_validate_json(lines[-1].removeprefix(HANDOFF_MARKER))


def without_request(text: str) -> str | None:
    """Return a message without the request at its end; None if nothing else is left. From here on the request is data,
    and not everybody who may read the rest may know the specialist it names."""
    stripped = text.rstrip()
    return stripped[: stripped.rindex(HANDOFF_MARKER)].rstrip() or None


def _fenced(lines: list[str]) -> bool:
    """True if a fenced block is open at the end of the lines (CommonMark 0.31, 4.5)."""
    opened: str | None = None
    for line in lines:
        match = _FENCE.match(line)
        if match is None:
            continue
        if opened is None:
            opened = match[1]
        elif match[1].startswith(opened) and not line[match.end() :].strip():
            opened = None
    return opened is not None
