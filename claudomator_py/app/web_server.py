"""The web server with the API, the page and the hub's endpoint; imported for the first connection, see ``Web``."""

import shutil
import socket
import warnings
from collections.abc import Sequence
from pathlib import Path

from pydantic.warnings import UnsupportedFieldAttributeWarning

from claudomator_py.api.app import create_app
from claudomator_py.api.endpoint import bound_address
from claudomator_py.api.server import WebServer
from claudomator_py.api.settings import WebSettings
from claudomator_py.api.streams import Streams
from claudomator_py.app.assemble import Components
from claudomator_py.app.readiness import faults_of
from claudomator_py.daemon.loop import Daemon
from claudomator_py.daemon.metering import Meter, ProcessGauges
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.protocols.hub import Hub
from claudomator_py.resources.overview.service import Overview
from claudomator_py.schema.settings import Http

# FastAPI ignores it while it declares its fields, which it makes of ours: now they are built later.
warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)


def make_server(
    daemon: Components,
    loop: Daemon,
    hub: Hub,
    settings: Http,
    token: str,
    state: Path,
    sockets: Sequence[socket.socket],
) -> WebServer:
    """Return the server on these sockets, TCP first, without starting it. Raises StoreUnavailable."""
    around, desk = daemon.surroundings, daemon.desk()
    overview = desk.access.as_(OPERATOR)[Overview]
    gauges = ProcessGauges(
        ticks=lambda: loop.ticks,
        checks=lambda: overview.readiness().checks,
        refused_files=lambda: len(daemon.arrivals.refusals),
        free_bytes=lambda: shutil.disk_usage(state).free,
        least_free_bytes=lambda: around.current().settings.limits.min_free,
        hosts=lambda: around.host.hosts(ask=False) if around.current().settings.hosts else (),
        faults=lambda: faults_of(daemon),
    )
    streams = Streams()
    app = create_app(
        desk.access,
        WebSettings(token=token, listen=bound_address(sockets[0]), allowed_hosts=settings.allowed_hosts),
        desk.keyring,
        Meter(around.database, daemon.engine.observer, around.clock, gauges),
        streams,
        redactor=around.secrets.redactor,
        database=around.database,
        hub=hub,
    )
    return WebServer(app, sockets, streams.close)
