"""What command lines do, in few words."""

from collections.abc import Sequence

from claudomator_py.acts import Reach
from claudomator_py.acts.walk import Act


def least_reach(acts: Sequence[Act]) -> Reach:
    """Return the smallest reach that allows all these acts."""
    return max((act.reach for act in acts), key=lambda reach: reach.rank, default=Reach.TREE)
