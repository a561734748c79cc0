"""/v1/specialists: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.specialists.service import Specialists
from claudomator_py.resources.specialists.shape import SpecialistCalls

specialists = serve(
    "specialists",
    Specialists,
    {
        SpecialistCalls.specialists: Specialists.page,
        SpecialistCalls.register_specialist: Specialists.register,
        SpecialistCalls.search_specialists: Specialists.search,
        SpecialistCalls.specialist: Specialists.one,
        SpecialistCalls.replace_specialist: Specialists.replace,
        SpecialistCalls.remove_specialist: Specialists.remove,
        SpecialistCalls.grant_specialist: Specialists.grant,
        SpecialistCalls.admit_specialist: Specialists.admit,
        SpecialistCalls.dismiss_specialist: Specialists.dismiss,
        SpecialistCalls.revoke_specialist: Specialists.revoke,
    },
)
