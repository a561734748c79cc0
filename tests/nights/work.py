"""A night's work, from a seed: tasks of all the habits that people have."""

from dataclasses import dataclass
from random import Random

from tests.e2e.site import Site

AGENTS = ("alpha", "beta", "gamma")
HOPELESS = 99
REPOSITORIES = 5


@dataclass(frozen=True, slots=True)
class Job:
    """A task as a file would hold it. units: of work. fails: attempts that fail first. plain: nothing but its priority
    decides when it is its turn."""

    name: str
    content: dict[str, object]
    units: int
    fails: int = 0
    plain: bool = False

    @property
    def strict(self) -> str | None:
        """The agent that it insists on."""
        hint = self.content.get("agent")
        return hint["type"] if isinstance(hint, dict) and hint.get("strict") else None


def jobs(random: Random, site: Site, count: int, effects: str) -> list[Job]:
    """Plain tasks mostly; some share a directory, want an agent or insist on it, wait for others, are checked, or fail
    at first or always; and each says for itself what it does at a limit. The last three are for gamma, whenever it can.
    """
    made: list[Job] = []
    for number in range(count):
        name = f"t{number:03}"
        units = min(8, 1 + int(random.expovariate(1 / 2)))
        content: dict[str, object] = {
            "priority": random.choices(["low", "normal", "high"], [2, 6, 2])[0],
            "retry": {"max_attempts": 8, "backoff": "200ms"},
            "on_limit": random.choices(["failover", "wait", "fail"], [70, 25, 5])[0],
        }
        fails, plain = 0, False
        match random.choices(
            ["plain", "directory", "wish", "strict", "after", "checked", "flaky", "hopeless"],
            [38, 15, 10, 10, 12, 6, 6, 3],
        )[0]:
            case "directory":
                content["working_dir"] = str(site.work / f"repository-{random.randrange(REPOSITORIES)}")
            case "wish":
                content["agent"] = {"type": random.choice(AGENTS)}
            case "strict":
                content["agent"] = {"type": random.choice(AGENTS), "strict": True}
            case "after" if made:
                content["depends_on"] = sorted({random.choice(made).name for _ in range(random.randint(1, 2))})
            case "checked":
                content["check"] = [["sh", "-c", f'grep -qx "$CLAUDOMATOR_TASK" {effects}'], site.ledger.check()]
            case "flaky":
                fails = random.randint(1, 2)
            case "hopeless":
                fails, content["retry"] = HOPELESS, {"max_attempts": 2, "backoff": "200ms"}
            case _:
                plain = True
        content |= {"name": name, "instructions": f"Work through the night: units={units} fails={fails}."}
        made.append(Job(name, content, units, fails, plain))
    return [*made, *_for_gamma()]


def _for_gamma() -> list[Job]:
    strict = {"type": "gamma", "strict": True}
    wants: dict[str, dict[str, object]] = {
        "gamma-1": {"agent": strict},
        "gamma-2": {"agent": strict, "on_limit": "wait"},
        "after-gamma": {"depends_on": ["gamma-1"]},
    }
    work = "Work through the night: units=1 fails=0."
    return [
        Job(name, {"name": name, "priority": "low", "instructions": work, **content}, units=1)
        for name, content in wants.items()
    ]
