"""${message[:1].upper() + message[1:]}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    ${upgrades if upgrades else "pass"}
