"""The kind ``command``: a configured argv, the task on stdin, and the exit code as the result."""

from claudomator_py.agents.command import INFO
from claudomator_py.agents.command.reader import CommandReader
from claudomator_py.agents.event_kind import restrictions, zone_of
from claudomator_py.agents.programs import found
from claudomator_py.agents.transcript import LineTranscript, TextTranscript
from claudomator_py.domain.agent import AgentHealth, AgentSpec
from claudomator_py.domain.run import Conversations, Launch, LaunchRequest, Stream
from claudomator_py.domain.task import TaskSpec
from claudomator_py.values import regex

PLACEHOLDERS = ("prompt_file", "task", "model")
_PLACEHOLDER = regex(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")
# A model may come from a task file, and the template may pass it to a shell.
_PLAIN_MODEL = regex(r"[A-Za-z0-9][\w.:/@+\[\]-]*")


class CommandAgent:
    """The kind ``command``."""

    kind = INFO.name
    conversations = Conversations.NONE

    def launch(self, request: LaunchRequest) -> Launch:
        """Return the command with its placeholders filled in. Raises ValueError if that is impossible. A resumed run
        gets the same command line, as a plain program has no conversations."""
        agent = request.agent
        if problem := _problem(agent):
            raise ValueError(problem)
        values = {"prompt_file": request.prompt_file, "task": request.task.name}
        if request.model is not None:
            values["model"] = request.model.model
        if "model" in _placeholders(agent):
            _check_model(agent, values.get("model"))
        words = (*agent.command, *agent.extra_args)
        return Launch(tuple(_fill(word, values) for word in words), stdin=request.prompt)

    def reader(self, request: LaunchRequest | None = None) -> CommandReader:
        return CommandReader() if request is None else CommandReader(request.agent.output, zone_of(request))

    def transcript(self, stream: Stream, offset: int = 0) -> LineTranscript:
        return TextTranscript(offset)

    def health(self, agent: AgentSpec, path: str) -> AgentHealth:
        """Return whether its program is there."""
        problem = _problem(agent)
        return AgentHealth(installed=False, problem=problem) if problem else found(agent, path)

    def unfenced(self, agent: AgentSpec) -> str | None:
        """Return why it has no fence: nobody can tell what a program will do."""
        return f"there is no fence for agents of kind {self.kind}"

    def unsupported(self, task: TaskSpec, agent: AgentSpec) -> list[str]:
        """Return what of the task a plain program ignores, such as tools, turns and further folders."""
        asked = restrictions(task)
        if not asked:
            return []
        takes_model = "model" in _placeholders(agent)
        wanted = ", ".join(field for field in asked if field != "agent.model" or not takes_model)
        return [f"{agent.name} is a plain command, which cannot keep to {wanted}"] if wanted else []


def _placeholders(agent: AgentSpec) -> set[str]:
    words = (*agent.command, *agent.extra_args)
    return {match[1] for word in words for match in _PLACEHOLDER.finditer(word) if match[1] is not None}


def _problem(agent: AgentSpec) -> str | None:
    key = f"agents.{agent.name}.command"
    if not agent.command:
        return f"{key} is empty; write the program and its arguments, such as [make, lint]"
    unknown = sorted(_placeholders(agent) - set(PLACEHOLDERS))
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS) + "; write {{ and }} for plain braces"
        return f"{key} has the unknown placeholder {{{unknown[0]}}}; there are {known}"
    return None


def _check_model(agent: AgentSpec, model: str | None) -> None:
    key = f"agents.{agent.name}"
    if model is None:
        raise ValueError(
            f"{key}.command has {{model}}, but no model was chosen; give {key}.models, or leave {{model}} out"
        )
    if not _PLAIN_MODEL.fullmatch(model):
        raise ValueError(f"{model!r} is not a model's name; use letters, digits and . : / @ + - _ [ ] only")


def _fill(word: str, values: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]] if match[1] is not None else match[0][0], word)


KIND = CommandAgent()
