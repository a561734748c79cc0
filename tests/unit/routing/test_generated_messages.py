"""Ten thousand messages made from pieces of which it is known whom they address: none is missed, and none invented."""

import random

from claudomator_py.domain.channel import Incoming, Member, MemberRole, PrimaryRule, TriageReason, TriageSettings
from claudomator_py.routing.triage import triage

MESSAGES = 3_000
SEED = 20_261_123
AGENTS = {
    "a1": ("pipe-doctor", "Pipe Doctor"),
    "a2": ("pipe", "Pipe"),
    "a3": ("zoe", "Zoë Grün"),
    "a4": ("twin_1", "Twin"),
    "a5": ("twin_2", "Twin"),
    "a6": ("agent_007", "エージェント"),
    "a7": ("agent_0071", "Ωmega Straße"),
    "a8": ("node.js", "Node.js Expert"),
    "a9": ("rev", "Reviewer (EU)"),
}
USERS = {"u1": ("mara", "Mara"), "u2": ("sam", "Sam"), "u3": ("bo", "Pipe Doctor Bo")}
MEMBERS = [
    Member(id=identity, username=names[0], display_name=names[1], role=role)
    for people, role in ((AGENTS, MemberRole.AGENT), (USERS, MemberRole.USER))
    for identity, names in people.items()
]
OFF = TriageSettings(primary=PrimaryRule.OFF)

WRITTEN = [
    *((f"@{name}", "a1") for name in ("pipe-doctor", "PIPE-Doctor", "a1", "Pipe Doctor", "pipe \u00a0 DOCTOR")),
    *((f"@{name}", "a2") for name in ("pipe", "PIPE", "\uff30\uff49\uff50\uff45", "A2", '"Pipe"', "«pipe»")),
    *((text, "a2") for text in ("日@pipe", "これは@pipe", "@pipe에게", "请@Pipe看一下")),
    *((f"@{name}", "a3") for name in ("zoe", "Zoë Grün", "ZOË GRÜN", "zoe\u0308 gru\u0308n", "„Zoë Grün“")),
    *((f"@{name}", "a4") for name in ("twin_1", "TWIN_1", "a4")),
    *((f"@{name}", "a6") for name in ("agent_007", "エージェント", "\uff74\uff70\uff7c\uff9e\uff6a\uff9d\uff84", "a6")),
    *((f"@{name}", "a7") for name in ("agent_0071", "ωmega strasse", "ΩMEGA STRASSE", "'Ωmega Straße'")),
    *((f"@{name}", "a8") for name in ("node.js", "Node.JS Expert", "“Node.js Expert”")),
    *((f"@{name}", "a9") for name in ("rev", "Reviewer (EU)", "\u2018reviewer (eu)\u2019")),
]
"""A mention as it may be written, and of whom."""
AMBIGUOUS = ("@Twin", "@twin", "@TWIN", '@"Twin"', "@„twin“")
OF_NOBODY = (
    *(
        "@mara",
        "@u2",
        "@Pipe Doctor Bo",
        "@nobody",
        "@ pipe",
        "@",
        "\uff20pipe",
        "@\u0440ipe",
        "@'pipe-doctor'",
        '@"Pipe',
    ),
    *("@pipes", "@pipe_x", "@pipe-x", "@pipe7", "@pipe\u0301", "@twin_", "@agent_00", "@zoë", '@"Zoë"', "@\u200bpipe"),
    *("@pipe(x)", "@pipe/x", "@pipe@x", "@pipe.x", "@pipe.7", "@pipe doctor(x)", "@zoe.ü", "@rev/pipe", "@@pipe"),
    *("x@pipe", "7@pipe", "ü@pipe", "_@pipe", ".@pipe", "-@pipe", "/@pipe", "\\@pipe", "e\u0301@pipe", "x日x@pipe"),
    *("a.b@pipe.example", "%@pipe.example", "mailto:x+y@zoe.example", "git@pipe:x/y"),
    *("https://x.example/@pipe", "see www.x.example/@pipe,@zoe", "http://u:p@pipe/?q=@zoe", "ssh://@pipe"),
    *("`@pipe`", "``@pipe ` @zoe``", "`a\n@pipe`", "npm i @types/node", "pip @rev.fixture"),
)
"""Pieces in which nobody is addressed, whatever they look like."""
BLOCKS = (
    *("> @pipe", "   > @zoe said", ">@pipe", "> `\n> @pipe"),
    *("```\n@pipe\n> @zoe\n```", "~~~ py\n@pipe\n```\n@zoe\n~~~~", "  ```\n@pipe\n   ```", "````\n```\n@pipe\n````"),
)
"""Whole lines in which nobody is addressed."""
PLAIN = (
    *("please look", "thanks!", "the build is red", "3 * 4", "¿qué?", "これは", "مرحبا", "x = y[0]", "a_b", "-- ok --"),
    *("# not", "é", "🙂", "50% off", "it's", "**bold**", "(see below)", "\u200b", "1. first"),
)
BEFORE = (
    "",
    "(",
    "**",
    "cc:",
    "¡",
    ",",
    ";",
    '"',
    "<",
    "\u200b",
    "\u200f",
    "⚠️",
    "→",
    "\uff08",
    "\uff0f",
    "\uff3f",
    "#",
    "\u00ad",
)
AFTER = (
    "",
    ".",
    ",",
    "!",
    ")",
    "**",
    "'s",
    ":",
    "…",
    "?!",
    "\u200b",
    "\uff0c",
    "\uff08x\uff09",
    "\uff0d",
    "—",
    ">",
    ". ",
    "\u200f",
)


def made(chance: random.Random) -> tuple[str, list[str], list[str]]:
    """A message, whom it addresses, and which of its mentions are ambiguous."""
    lines, addressed, ambiguous = [], dict[str, None](), dict[str, None]()
    for _ in range(chance.randint(1, 4)):
        kind = chance.random()
        if kind < 0.25:
            lines.append(chance.choice(BLOCKS))
            continue
        pieces = []
        for _ in range(chance.randint(1, 5)):
            kind = chance.random()
            if kind < 0.3:
                written, whom = chance.choice(WRITTEN)
                pieces.append(chance.choice(BEFORE) + written + chance.choice(AFTER))
                addressed[whom] = None
            elif kind < 0.35:
                written = chance.choice(AMBIGUOUS)
                pieces.append(chance.choice(BEFORE) + written + chance.choice(AFTER))
                ambiguous[written] = None
            elif kind < 0.65:
                pieces.append(chance.choice(OF_NOBODY))
            else:
                pieces.append(chance.choice(PLAIN))
        # A word between, so that no piece goes on in the next one.
        lines.append("and " + " so ".join(pieces) + " end")
    return "\n".join(lines), list(addressed), list(ambiguous)


def test_everybody_who_is_addressed_is_found_and_nobody_else() -> None:
    chance = random.Random(SEED)
    seen = set()
    for _ in range(MESSAGES):
        content, addressed, ambiguous = made(chance)
        triage_decision = triage(Incoming(author="u1", content=content), OFF, MEMBERS, None)
        assert (list(triage_decision.agents), list(triage_decision.ambiguous)) == (addressed, ambiguous), content
        assert (triage_decision.reason is TriageReason.DIRECT_MENTION) == bool(addressed)
        seen.add((len(addressed), len(ambiguous)))
    assert len(seen) > 15, "the messages differ in whom they address"


def test_glued_mentions_are_each_found() -> None:
    chance = random.Random(SEED)
    for _ in range(500):
        pairs = [chance.choice(WRITTEN) for _ in range(3)]
        content = chance.choice([",", ";", "|", " ", "\n", "&", "!"]).join(written for written, _ in pairs)
        triage_decision = triage(Incoming(author="u1", content=content), OFF, MEMBERS, None)
        assert list(triage_decision.agents) == list(dict.fromkeys(whom for _, whom in pairs)), content
