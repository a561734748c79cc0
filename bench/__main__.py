"""``python -m bench [NAME ...]``: run the measurements of that name, or all."""

import sys
from collections.abc import Callable

from bench import metrics, queue, routing, shims, size, start, trivial

MEASUREMENTS: dict[str, Callable[[], None]] = {
    "shims": shims.measure,
    "metrics": metrics.measure,
    "queue": queue.measure,
    "routing": routing.measure,
    "start": start.measure,
    "trivial": trivial.measure,
    "size": size.measure,
}


def main(names: list[str]) -> int:
    """Run them; 2 for a name that is not known."""
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        sys.stderr.write(f"no measurement is called {unknown[0]}; there are: {', '.join(MEASUREMENTS)}\n")
        return 2
    for name in names or MEASUREMENTS:
        sys.stdout.write(f"{name}\n")
        MEASUREMENTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
