"""Who may do what, and whose work exists for whom."""

import pytest

from claudomator_py.domain.principal import INBOX, OPERATOR, OWN, Principal, Role, tenant_named, tenant_of

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


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (OPERATOR, ("operator", "inbox")),
        (INBOX, ("operator", "inbox")),
        (Principal("operator", Role.OPERATE, "acme"), ("operator",)),
        (Principal("ann", Role.ADMIN), ("ann",)),
        (Principal("ann", Role.ADMIN, "acme"), ("ann",)),
    ],
)
def test_the_operator_is_also_the_inbox_but_nobody_of_an_organisation_is_either(
    by: Principal, names: tuple[str, ...]
) -> None:
    assert by.names == names


@pytest.mark.parametrize(
    ("creator", "organisation", "tenant", "named"),
    [
        ("ann", "acme", "org:acme", {"organisation": "acme"}),
        ("operator", "acme", "org:acme", {"organisation": "acme"}),
        ("ann", None, "by:ann", {"creator": "ann"}),
    ],
)
def test_work_is_of_an_organisation_or_else_of_its_creator(
    creator: str, organisation: str | None, tenant: str, named: dict[str, str]
) -> None:
    assert tenant_of(creator, organisation) == tenant
    assert tenant_named(tenant) == named


@pytest.mark.parametrize("creator", [OPERATOR.id, INBOX.id])
def test_work_of_the_operator_is_the_daemons_own(creator: str) -> None:
    assert tenant_of(creator, None) == OWN
