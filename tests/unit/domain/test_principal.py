"""Who may do what, and whose work exists for whom."""

import pytest

from claudomator_py.domain.principal import INBOX, OPERATOR, Principal, Role

RUN = Principal("run:r-1", Role.RUN, run_id="r-1")


@pytest.mark.parametrize(
    ("role", "permitted"),
    [
        (Role.READ, {Role.READ}),
        (Role.OPERATE, {Role.READ, Role.OPERATE}),
        (Role.ADMIN, {Role.READ, Role.OPERATE, Role.ADMIN}),
        (Role.RUN, {Role.RUN}),
    ],
)
def test_a_role_permits_what_those_before_it_do_and_a_run_is_none_of_them(role: Role, permitted: set[Role]) -> None:
    assert {needed for needed in Role if role.permits(needed)} == permitted


@pytest.mark.parametrize(
    ("by", "seen"),
    [
        (OPERATOR, {None, "acme", "other"}),
        (INBOX, {None, "acme", "other"}),
        (Principal("ann", Role.ADMIN, "acme"), {"acme"}),
        (RUN, set()),
        (Principal("run:r-2", Role.RUN, "acme", "r-2"), set()),
    ],
)
def test_whoever_belongs_to_an_organisation_sees_its_work_alone_and_a_run_that_of_nobody(
    by: Principal, seen: set[str | None]
) -> None:
    assert {organisation for organisation in (None, "acme", "other") if by.sees(organisation)} == seen
    assert by.sees_all is (len(seen) == 3)
