"""Many tasks of every sort, made from a seed, and what an operator does to them meanwhile."""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from claudomator_py.client import ServiceProblem
from claudomator_py.client.http import Client
from claudomator_py.domain.requests import RestartRequest, TaskFilter
from claudomator_py.domain.task import TaskSpec
from tests.e2e.site import Site
from tests.fakes.steps import from_document

Step = Callable[[Client], None]


@dataclass(frozen=True, slots=True)
class Document:
    """A task as a file would hold it."""

    name: str
    content: dict[str, object]

    @property
    def spec(self) -> TaskSpec:
        """The same, for the API."""
        return from_document(self.content)


def documents(random: Random, site: Site, count: int) -> list[Document]:
    """Tasks, of which a tenth each fails for good, fails at first, is checked, fails its check, or never ends."""
    made: list[Document] = []
    for number in range(count):
        name = f"task-{number:03}"
        content: dict[str, object] = {"name": name, "on_lost": random.choice(["retry", "fail"])}
        retry = {"max_attempts": random.choice([1, 2, 5]), "backoff": "20ms"}
        work = f"do: sleep 0.{random.randrange(10):02}"
        match random.randrange(10):
            case 0:
                work += "\ndo: exit 3"
            case 1:
                work += "\ndo: [ $CLAUDOMATOR_ATTEMPT -ge 2 ] || exit 4"
            case 2:
                content["check"] = [site.ledger.check()]
            case 3:
                content["check"] = [site.ledger.check(1)]
            case 4:
                work, name = "do: sleep 600", f"endless-{number:03}"
            case 5 if number % 3 == 0:
                work = (
                    f"simulate: delay={random.randrange(100)}ms outcome={random.choice(['success', 'fail', 'crash'])}"
                )
                content["agent"] = {"type": "simulated"}
            case 6 | 7 if made:
                content["depends_on"] = [random.choice(made).name]
        content |= {"name": name, "instructions": work, "retry": retry, "priority": random.choice(["low", "high"])}
        made.append(Document(name, content))
    return made


class Operator:
    """Hands the tasks in, half of them as files, cancels what never ends and restarts some of the others."""

    def __init__(self, random: Random, site: Site, count: int) -> None:
        self.acknowledged: set[str] = set()
        self.file_names: list[str] = []
        self.names: list[str] = []
        self.refused = 0
        self._site = site
        self._random = random
        steps: list[tuple[float, Step]] = []
        for number, document in enumerate(documents(random, site, count)):
            self.names.append(document.name)
            if random.random() < 0.5:
                self.file_names.append(document.name)
                steps.append((number, self._drop(document)))
            else:
                steps.append((number, self._submit(document)))
            if document.name.startswith("endless"):
                steps.append((number + random.uniform(1, 60), self._cancel(document.name)))
            elif random.random() < 0.15:
                steps.append((number + random.uniform(1, 60), self._restart(document.name, random.random() < 0.5)))
        self._steps = deque(step for _, step in sorted(steps, key=lambda pair: pair[0]))

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return not self._steps

    def work(self, client: Client, most: int | None = None) -> None:
        """Do the next steps, at most so many. Raises what the client raises; the step is then done once more."""
        while self._steps and (most is None or most > 0):
            self._steps[0](client)
            self._steps.popleft()
            most = None if most is None else most - 1

    def _drop(self, document: Document) -> Step:
        return lambda _: void(self._site.drop(f"{document.name}.yaml", json.dumps(document.content)))

    def _submit(self, document: Document) -> Step:
        def step(client: Client) -> None:
            # An answer may have been lost after the task was accepted.
            if not client.tasks(TaskFilter(name=document.name)).items:
                self.acknowledged.add(client.submit(document.spec).id)

        return step

    def _cancel(self, name: str) -> Step:
        return self._unless_refused(lambda client: void(client.cancel(name)))

    def _restart(self, name: str, force: bool) -> Step:
        return self._unless_refused(lambda client: void(client.restart(name, RestartRequest(force=force))))

    def _unless_refused(self, step: Step) -> Step:
        """A task that is not there yet is waited for; one that is over, or not yet begun, is left alone."""

        def careful(client: Client) -> None:
            try:
                step(client)
            except ServiceProblem as problem:
                if problem.code == "not_found":
                    self._steps.append(careful)
                else:
                    self.refused += 1

        return careful


def void(_: object) -> None:
    """Nothing: the value is not wanted."""
