"""Queues of thousands of tasks, made by the database itself from one that was accepted."""

from sqlalchemy import Connection, insert, literal, select, text, true
from sqlalchemy.sql.expression import ColumnElement

from claudomator_py.store.tables import TASK, TASK_REVISION


def multiply(connection: Connection, name: str, number: int, *, folders: bool = False) -> None:
    """So many more tasks like the one of that name, each behind the one before. folders: each in one of its own."""
    one = connection.execute(select(TASK).where(TASK.c.name == name)).one()
    numbers = (
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :number) "
        "SELECT n FROM numbers"
    )
    ns = text(numbers).bindparams(number=number).columns(n=TASK.c.rank_ms.type).subquery("numbers")
    task_id = (literal(f"{one.id}-").op("||")(ns.c.n)).label("id")

    def value(column: str) -> ColumnElement[object]:
        match column:
            case "id":
                return task_id
            case "name":
                return literal(f"{name}-").op("||")(ns.c.n)
            case "rank_ms":
                return TASK.c.rank_ms + ns.c.n
            case "dir_key" if folders:
                return TASK.c.dir_key.op("||")(ns.c.n)
        return TASK.c[column]

    columns = [column.name for column in TASK.columns if column.computed is None]
    rows = select(*map(value, columns)).join_from(TASK, ns, true()).where(TASK.c.id == one.id)
    connection.execute(insert(TASK).from_select(columns, rows))
    contents = [column.name for column in TASK_REVISION.columns]
    chosen = TASK_REVISION.c.task_id == one.id
    picked = [task_id if column == "task_id" else TASK_REVISION.c[column] for column in contents]
    connection.execute(
        insert(TASK_REVISION).from_select(contents, select(*picked).join_from(TASK_REVISION, ns, true()).where(chosen))
    )
