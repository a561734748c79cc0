"""A daemon over real HTTP for each module that asks for one, on a service that is empty again for each test."""

from collections.abc import Iterator

import pytest

from tests.fakes.daemon import Daemon, running
from tests.fakes.prepared import PreparedService


@pytest.fixture(scope="module")
def _prepared() -> Iterator[PreparedService]:
    prepared = PreparedService()
    yield prepared
    prepared.close()


@pytest.fixture(scope="module")
def _daemon(_prepared: PreparedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(_prepared, tmp_path_factory.mktemp("state")) as daemon:
        yield daemon


@pytest.fixture
def prepared(_prepared: PreparedService) -> PreparedService:
    _prepared.clear()
    return _prepared


@pytest.fixture
def daemon(prepared: PreparedService, _daemon: Daemon) -> Daemon:
    return _daemon
