"""/v1/route and /v1/routing: which method of which service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.routing.service import Learned
from claudomator_py.resources.routing.shape import RoutingCalls
from claudomator_py.resources.specialists.service import Specialists

route = serve("routing", Specialists, {RoutingCalls.route: Specialists.route})
routing = serve(
    "routing",
    Learned,
    {
        RoutingCalls.routing_stats: Learned.stats,
        RoutingCalls.learned: Learned.all,
        RoutingCalls.labels: Learned.labelled,
        RoutingCalls.reset_learned: Learned.forget,
        RoutingCalls.freeze_learning: Learned.freeze,
        RoutingCalls.unfreeze_learning: Learned.unfreeze,
    },
)
