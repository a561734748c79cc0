"""Whose a token is, as long as it is good."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.domain.units import DAY_MS, HOUR_MS
from claudomator_py.environment.secrets import RunTokens
from claudomator_py.resources.access import TokenRequest
from claudomator_py.resources.access.service import PREFIX
from claudomator_py.resources.tasks.service import Tasks
from claudomator_py.store import access_rows
from tests.databases import open_migrated
from tests.fakes.steps import spec
from tests.fakes.world import World

DASH = Principal("dash", Role.READ, "acme")
RUN_TOKENS = RunTokens("x" * 32)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_migrated(tmp_path) as database:
        yield World(database)


def given(world: World, name: str = "dash", expires: str = "1d") -> str:
    """A token that was given out."""
    request = TokenRequest(name=name, role="read", organisation="acme", expires=expires)
    return world.tokens.create(request).token


def test_a_token_is_known_at_once_and_after_a_restart_and_no_other_is(world: World) -> None:
    heard: list[None] = []
    world.keyring.on_change(lambda: heard.append(None))
    token = given(world)
    assert (token.startswith(PREFIX), len(heard)) == (True, 1)
    for _ in range(2):
        assert world.keyring.holder(token) == DASH
        assert world.keyring.named("dash") == DASH
        assert (world.keyring.holder(f"{token}x"), world.keyring.named("dish")) == (None, None)
        world.restarted_daemon()


@pytest.mark.parametrize(("after_ms", "good"), [(DAY_MS - 1, True), (DAY_MS, False)])
def test_a_token_is_good_until_it_expires(world: World, after_ms: int, good: bool) -> None:
    token, lasting = given(world), given(world, "lasting", "never")
    world.now_ms += after_ms
    assert (world.keyring.holder(token), world.keyring.named("dash")) == ((DASH, DASH) if good else (None, None))
    assert world.keyring.holder(lasting) == Principal("lasting", Role.READ, "acme")


@pytest.mark.parametrize("expires", ["1d", "never"])
def test_a_token_is_good_until_it_is_revoked(world: World, expires: str) -> None:
    token = given(world, expires=expires)
    world.tokens.revoke("dash")
    assert (world.keyring.holder(token), world.keyring.named("dash")) == (None, None)


def test_the_operator_is_always_there(world: World) -> None:
    assert world.keyring.named(OPERATOR.id) == OPERATOR


@pytest.mark.parametrize("restarted", [False, True])
def test_that_a_token_is_in_use_is_written_once_an_hour(world: World, restarted: bool) -> None:
    token, begin = given(world), world.now_ms

    def used_ms() -> int | None:
        world.database.write(lambda _: None)  # what was queued before is done
        return world.database.read(access_rows.tokens)[0].used_ms

    assert used_ms() is None
    for after_ms, noted_ms in ((0, 0), (HOUR_MS - 1, 0), (HOUR_MS, HOUR_MS), (2 * HOUR_MS - 1, HOUR_MS)):
        world.now_ms = begin + after_ms
        world.keyring.holder(token)
        assert used_ms() == begin + noted_ms
        if restarted:
            world.restarted_daemon()


def test_a_token_is_not_in_use_because_another_is(world: World) -> None:
    given(world)
    world.keyring.holder(given(world, "other"))
    world.database.write(lambda _: None)

    def used(connection: Connection) -> dict[str, int | None]:
        return {token.name: token.used_ms for token in access_rows.tokens(connection)}

    assert world.database.read(used) == {"dash": None, "other": world.now_ms}


# --- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["runs", "ended", "cancelled", "restarted", "unknown"])
def test_a_run_is_known_by_its_token_while_it_is_under_way_and_is_to_be(world: World, what: str) -> None:
    world.access.as_(Principal("ann", Role.OPERATE, "acme"))[Tasks].submit(spec("t"))
    world.tick()
    run = world.live("t")
    if what == "ended":
        world.succeed("t")
    elif what == "cancelled":
        world.service.cancel("t")
    elif what == "restarted":
        world.restart("t", force=True)
    token = RUN_TOKENS.of("another" if what == "unknown" else run.id)
    principal = Principal(f"run:{run.id}", Role.RUN, "acme", run.id) if what == "runs" else None
    assert world.keyring.running(token) == principal
    assert world.keyring.running(f"{token}x") is None
    assert world.keyring.running(RunTokens("y" * 32).of(run.id)) is None


def test_without_the_database_no_run_is_known_but_a_token_that_was_not_made_here_is_none_of_a_run(
    world: World,
) -> None:
    world.database.close()
    with pytest.raises(Unavailable):
        world.keyring.running(RUN_TOKENS.of("r"))
    assert world.keyring.running(RunTokens("y" * 32).of("r")) is None
