"""The configuration's `routing`, which finds a specialist for a task that names none, and `learning` from the
results."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, model_validator

from claudomator_py.domain.fields import Count, Duration, EnvName, Flag, Line, LineList, Name, Number, Strict, refusal
from claudomator_py.domain.units import DAY_MS, MINUTE_MS, SECOND_MS


class Preset(StrEnum):
    """How a task's signals are weighted."""

    CALIBRATED = "calibrated"
    """Skill centroids, with weights and a threshold fitted for the encoder."""
    CLASSIC = "classic"
    """One vector per card, blended with fixed weights."""
    NONE = "none"
    """No routing: a task that names no specialist runs without one."""


class EncoderKind(StrEnum):
    """What turns text into a vector."""

    HASHED = "hashed"
    """Hashed n-grams: no weights, no network."""
    OPENAI = "openai"
    """A service with OpenAI's ``/v1/embeddings``, possibly local."""
    MINILM = "minilm"
    """MiniLM in a separate process, from the extra of that name."""
    ONNX = "onnx"
    """The operator's own ONNX model in a separate process, from the extra of that name."""


class OnVague(StrEnum):
    """What happens to a task whose text says nothing."""

    DEFAULT = "default"
    ASK = "ask"


class OnAmbiguity(StrEnum):
    """What decides between specialists whose scores are too close."""

    DEFAULT = "default"
    """None of them: the default specialist does the task, unless the best is clearly ahead."""
    BEST = "best"
    """The score, however small the lead."""
    SIGNALS = "signals"
    """Keywords, performance and recency."""
    CLASSIFIER = "classifier"
    """The classifier chooses among them; if it does not answer, the signals decide."""
    CLARIFY = "clarify"
    """The operator is asked."""


_OPENAI_MODEL: Final = "text-embedding-3-small"
_OPENAI_KEY: Final = "OPENAI_API_KEY"


class EncoderSettings(Strict):
    """What turns tasks and skills into vectors."""

    kind: EncoderKind = Field(
        EncoderKind.HASHED,
        description="`hashed`: built in, without a network. `minilm`: a small model that knows what words mean, from "
        "the extra of that name. `onnx`: a model of your own, from the extra of that name. `openai`: a server with "
        "`/v1/embeddings`, a local one too.",
    )
    folder: Line | None = Field(
        None,
        description="Folder of the model, for kind `onnx`: `tokenizer.json` and `model.onnx`, as sentence-transformers "
        "exports them.",
    )
    model: Line | None = Field(
        None, description="The model to ask, for kind `openai`. Default: text-embedding-3-small."
    )
    base_url: Line | None = Field(
        None, description="Base URL of the server, for kind `openai`. Default: its public address."
    )
    api_key_env: EnvName | None = Field(
        None, description="Environment variable that holds the key, for kind `openai`. Default: OPENAI_API_KEY."
    )
    timeout: Duration = Field(
        5 * SECOND_MS, ge=100, le=5 * MINUTE_MS, description="Maximum time to wait for vectors, for kind `openai`."
    )

    @model_validator(mode="after")
    def _ask_nobody_in_vain(self) -> "EncoderSettings":
        if self.kind is not EncoderKind.OPENAI:
            for name in ("model", "base_url", "api_key_env"):
                if getattr(self, name) is not None:
                    remedy = "remove it, or write `kind: openai`"
                    raise refusal(f"`{name}` has no meaning for kind `{self.kind}`", remedy)
        if (self.folder is not None) != (self.kind is EncoderKind.ONNX):
            if self.folder is None:
                raise refusal("`kind: onnx` needs `folder`", "name the folder of the model")
            raise refusal(f"`folder` has no meaning for kind `{self.kind}`", "remove it, or write `kind: onnx`")
        if self.folder is not None and not self.folder.startswith("/"):
            raise refusal(f"`folder` is relative: {self.folder}", "write the whole path, beginning with `/`")
        return self

    @property
    def model_name(self) -> str | None:
        """The model to ask; None for a kind that asks no service."""
        return self.model or (_OPENAI_MODEL if self.kind is EncoderKind.OPENAI else None)

    @property
    def key_variable(self) -> str | None:
        """The variable with the key; None if no key is used."""
        return self.api_key_env or (_OPENAI_KEY if self.kind is EncoderKind.OPENAI else None)


class RoutingSettings(Strict):
    """How a task that names no specialist finds one."""

    preset: Preset = Field(
        Preset.CALIBRATED,
        description="How signals are weighed: `calibrated` compares skills, with weights and a threshold fitted for "
        "the encoder; `classic` compares cards, with fixed weights; `none` routes nothing.",
    )
    default_specialist: Name = Field(
        "generalist", description="Specialist of a task that fits no other well enough and carries little risk."
    )
    encoder: EncoderSettings = EncoderSettings()
    specialists: LineList = Field(
        ("specialists",),
        description="Folders of card files, watched like the inbox: each card follows its file.",
    )
    shipped: Flag = Field(
        True, description="Whether the specialists that come with Claudomator are registered. Read at the start."
    )
    on_ambiguity: OnAmbiguity = Field(
        OnAmbiguity.DEFAULT,
        description="Between specialists with nearly equal scores: give the task to the `default` specialist, take the "
        "`best`, let the other `signals` decide, ask the `classifier`, or have the operator `clarify`.",
    )
    on_vague: OnVague = Field(
        OnVague.DEFAULT,
        description="What becomes of a task whose text could be about anything, such as `fix it please`: it goes to "
        "the `default` specialist, or the operator is asked (`ask`) which one is meant.",
    )
    judge_risk: Flag = Field(
        False,
        description="Whether the classifier is asked how much harm a task could do. Its answer can raise the risk that "
        "words and rules show, never lower it.",
    )
    answer_within: Annotated[Duration, Field(gt=0, le=365 * DAY_MS)] | None = Field(
        None,
        description="How long a person has to say which specialist is meant, or to approve what the policy holds where "
        "no rule says. After that the task fails, with reason `expired`. Default: any time.",
    )
    max_handoffs: Count = Field(
        2,
        ge=0,
        le=20,
        description="How often the runs of a task may hand it on to another specialist. After that a person is asked.",
    )

    @property
    def enabled(self) -> bool:
        """True if tasks are routed at all."""
        return self.preset is not Preset.NONE


class LearningSettings(Strict):
    """What is learned from outcomes and corrections about who does what."""

    every: Duration = Field(
        10 * MINUTE_MS, ge=10 * SECOND_MS, le=DAY_MS, description="How often to learn from what has ended since."
    )
    rate: Number = Field(
        0.1,
        ge=0,
        le=1,
        description="How far one outcome moves what is known of a specialist's performance, from 0 (not at all) to 1 "
        "(the last outcome alone counts).",
    )
