"""Nothing is asked for nobody."""

import pytest

from claudomator_py.domain.principal import OPERATOR, Principal, Role
from claudomator_py.queries.bound import Asked


class _Whoever(Asked):
    def asker(self) -> Principal:
        return self._by


def test_what_is_bound_to_nobody_answers_nobody() -> None:
    with pytest.raises(RuntimeError, match="_Whoever is bound to nobody"):
        _Whoever().asker()


def test_each_is_bound_by_itself() -> None:
    ann = Principal("ann", Role.READ)
    unbound = _Whoever()
    assert unbound.as_(ann).asker() == ann
    assert unbound.as_(ann).as_(OPERATOR).asker() == OPERATOR
    with pytest.raises(RuntimeError, match="bound to nobody"):
        unbound.asker()
