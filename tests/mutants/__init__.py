"""Changes to the deciding modules, one at a time, that some unit test of the module has to notice: ``make mutants``.

A mutant is a module in which one small thing is wrong: a comparison at its boundary, ``and`` for ``or``, a guard that
never holds, a flag turned round, a call that is left out. The module's own unit tests are run against it, and only
these: what falls to an end-to-end test alone lives here. No file is touched: each mutant has a process of its own,
forked from one that has collected the tests already, and its functions are exchanged there.

    python -m tests.mutants                          # every module of MODULES
    python -m tests.mutants scheduler/plan.py        # only this one
    python -m tests.mutants --sample 40 --seed 1     # at most so many of each; the same ones for the same seed
    python -m tests.mutants --only "left out"        # those whose name, as it is printed, has these words
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "claudomator_py"
