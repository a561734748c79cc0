"""A daemon over real HTTP for each module, on a desk that is empty again for each test."""

from collections.abc import Iterator

import pytest

from tests.fakes.daemon import Daemon, running
from tests.fakes.desk import FakeDesk


@pytest.fixture(scope="module")
def _desk() -> FakeDesk:
    return FakeDesk()


@pytest.fixture(scope="module")
def _daemon(_desk: FakeDesk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(_desk, tmp_path_factory.mktemp("state")) as daemon:
        yield daemon


@pytest.fixture
def desk(_desk: FakeDesk) -> FakeDesk:
    _desk.clear()
    return _desk


@pytest.fixture
def daemon(desk: FakeDesk, _daemon: Daemon) -> Daemon:
    return _daemon
