"""A task's text that begins with a slash: whether the agent that gets it reads the first word as a command."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from claudomator_py.domain.fields import Strict

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
