"""The daemon's web server: the API, the page, and the hub that agents connect to."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from claudomator_py.api.app import create_app
from claudomator_py.api.endpoint import bound_address, publish_endpoint, url_of, withdraw_endpoint
from claudomator_py.api.server import WebServer
from claudomator_py.api.settings import WebSettings
from claudomator_py.api.streams import Streams
from claudomator_py.app.assemble import Components
from claudomator_py.app.listening import open_sockets
from claudomator_py.app.readiness import faults_of
from claudomator_py.daemon.loop import Daemon
from claudomator_py.daemon.metering import Meter, ProcessGauges
from claudomator_py.domain.principal import OPERATOR
from claudomator_py.protocols.hub import Hub
from claudomator_py.protocols.hub.waking import wake_remote_agent
from claudomator_py.schema.settings import Http


class Web:
    """The web server. Its sockets are open after construction; ``server`` answers once it serves."""

    def __init__(self, daemon: Components, loop: Daemon, settings: Http, token: str, listen: str, state: Path) -> None:
        """listen: the address. state: the state folder, in which clients find the address. Raises CannotListen,
        ValueError."""
        around, desk = daemon.surroundings, daemon.desk
        gauges = ProcessGauges(
            ticks=lambda: loop.ticks,
            checks=lambda: desk.overview.as_(OPERATOR).readiness().checks,
            refused_files=lambda: len(desk.refusals),
            free_bytes=lambda: shutil.disk_usage(state).free,
            least_free_bytes=lambda: around.current().settings.limits.min_free,
            hosts=lambda: around.host.hosts(ask=False) if around.current().settings.hosts else (),
            faults=lambda: faults_of(daemon),
        )
        self.hub = Hub(around.database, around.host, around.registry, wake_remote_agent)
        around.registry.is_present = self.hub.is_present
        around.database.on_commit(self.hub.wake)
        sockets = open_sockets(listen, state)
        self.url = url_of(sockets[0])
        streams = Streams()
        app = create_app(
            desk.access,
            WebSettings(token=token, listen=bound_address(sockets[0]), allowed_hosts=settings.allowed_hosts),
            desk.keyring,
            Meter(around.database, daemon.engine.observer, around.clock, gauges),
            streams,
            redactor=around.secrets.redactor,
            database=around.database,
            hub=self.hub,
        )
        self.server = WebServer(app, sockets, streams.close)


def publish(url: str, state: Path, in_place: Callable[[], bool], stack: ExitStack) -> None:
    """Publish the address, by which commands find the daemon, until the stack is closed."""
    stack.callback(withdraw, state, in_place)
    publish_endpoint(state, url)


def withdraw(state: Path, in_place: Callable[[], bool]) -> None:
    """Withdraw the published address, unless the state folder is another daemon's by now."""
    if in_place():
        withdraw_endpoint(state)
