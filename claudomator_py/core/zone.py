"""Names of time zones that nobody knows: what may have been meant."""

import difflib
from collections.abc import Iterable

from claudomator_py.core.problem import shown


def unknown_zone(name: str) -> str:
    """What is wrong with a name that no zone has."""
    return f"there is no time zone `{shown(name)}`"


def zone_remedy(name: str, known: Iterable[str]) -> str:
    """The zone that was meant, as far as can be told: by its whole name, or by its city's."""
    by_folded = {zone.casefold(): zone for zone in sorted(known)}
    folded = name[:100].casefold().replace(" ", "_")
    for zone in by_folded:
        if folded and zone.rpartition("/")[2] == folded:
            return f"did you mean `{by_folded[zone]}`?"
    nearest = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.85)
    return f"did you mean `{by_folded[nearest[0]]}`?" if nearest else "write a name such as Europe/Berlin or UTC"
