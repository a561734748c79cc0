"""``python -m tests.mutants``: see the package."""

import argparse
import math
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import tests.mutants
from tests.mutants import ROOT
from tests.mutants.changes import control, mutants
from tests.mutants.modules import EQUIVALENT, MODULES
from tests.mutants.trial import Tests, in_child


@dataclass(slots=True)
class Result:
    """What became of the mutants of a module. equal: how many change nothing; late: of those killed, by the clock."""

    module: str
    mutants: int
    equal: int = 0
    killed: int = 0
    late: int = 0
    survivors: int = 0

    def line(self) -> str:
        """As one line of the table."""
        figures = (self.mutants, self.equal, self.killed, self.late, self.survivors)
        return f"{self.module:30}" + "".join(f"{figure:12}" for figure in figures)


_COLUMNS = ("mutants", "equivalent", "killed", "by time", "survivors")
HEADINGS = f"{'module':30}" + "".join(f"{column:>12}" for column in _COLUMNS)


def _examine(module: str, only: Sequence[str], sample: int | None, seed: int) -> int:
    """Print which mutants of a module live; 1 if one does that is not known to change nothing."""
    tests = Tests(module, MODULES[module])
    if not tests.passed:
        print(f"{module}: its tests fail as it is", tests.output(), sep="\n")
        return 1
    if tests.run(control(module)) == 0:
        print(f"{module}: its tests pass although each of its functions raises")
        return 1
    results = [mutant for mutant in mutants(module) if not only or any(words in mutant.name for words in only)]
    if sample is not None and len(results) > sample:
        results = random.Random(seed).sample(results, sample)
    result = Result(module, len(results))
    for mutant in results:
        if mutant.name in EQUIVALENT:
            result.equal += 1
            continue
        status = tests.run(mutant.code)
        if status == 0:
            result.survivors += 1
            print(f"  line {mutant.line} of {mutant.name}", flush=True)
        else:
            result.killed += 1
            result.late += status is None
    print(result.line(), flush=True)
    return 1 if result.survivors else 0


def main() -> int:
    """Print every mutant that lives, and a line for each module. The exit status is 1 if one does that is not known to
    change nothing."""
    parser = argparse.ArgumentParser(
        description=tests.mutants.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=list(MODULES))
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module, chosen at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", action="append", help="mutants whose name has this text (or another, if repeated)")
    chosen = parser.parse_args()
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    # Loaded once for all; the package itself only in the process of each module.
    for library in ("pydantic", "sqlalchemy.orm", "sqlmodel", "alembic.command"):
        __import__(library)
    print(HEADINGS, flush=True)
    only = chosen.only or ()
    examinations = [partial(_examine, module, only, chosen.sample, chosen.seed) for module in chosen.modules]
    passed = [in_child(examination, math.inf) == 0 for examination in examinations]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
