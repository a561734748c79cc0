"""Nothing is asked for nobody."""

from typing import cast

import pytest

from claudomator_py.domain.errors import Unavailable
from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.resources.session import Service
from claudomator_py.store.database import Database, StoreUnavailable, or_unavailable

_NOWHERE = cast(Database, None)


class _Whoever(Service):
    def asker(self) -> Principal:
        return self._by


def test_what_is_bound_to_nobody_answers_nobody() -> None:
    with pytest.raises(RuntimeError, match="_Whoever is bound to nobody"):
        _Whoever(_NOWHERE).asker()


def test_each_is_bound_by_itself() -> None:
    ann = Principal("ann", Role.READ)
    unbound = _Whoever(_NOWHERE)
    assert unbound.as_(ann).asker() == ann
    assert unbound.as_(ann).as_(OPERATOR).asker() == OPERATOR
    with pytest.raises(RuntimeError, match="bound to nobody"):
        unbound.asker()


def test_what_the_store_says_is_a_sentence_to_those_who_ask() -> None:
    with pytest.raises(Unavailable) as refused, or_unavailable():
        raise StoreUnavailable("the disk is full (database or disk is full)", "make room on it")
    assert (refused.value.detail, refused.value.remedy) == (
        "The disk is full (database or disk is full).",
        "Make room on it.",
    )
