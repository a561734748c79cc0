"""The page of the task file, from its schema."""

from claudomator_py.domain.task import TaskSpec
from claudomator_py.schema.json_schema import task_json_schema
from docs.reference.markdown import code, page, table
from docs.reference.schema_words import Schema, default_words, fields, type_words

_INTRODUCTION = """
A task is a YAML mapping in a `.yaml`, `.yml` or `.json` file, or the front matter of a `.md` file whose text is the
instructions. A YAML file may contain several tasks, separated by `---`; each then needs a name. The API accepts the
same fields as JSON. An unknown key is an error that names the nearest known one.

`claudomator validate --schema` prints this table as a JSON Schema. A list of texts may be a single text. Durations are
written `90s`, `45m`, `2h`, `1d`; a bare number is refused, because its unit would be a guess.
"""
_OWN = "`x-*` | anything | none | Stored, never interpreted."


def task_file() -> str:
    """Every field of a task file."""
    schema = task_json_schema()
    values = TaskSpec(name="a", instructions="a").model_dump(mode="json")
    values |= {"name": "the file's stem"}
    rows = []
    for name, part, value in fields(schema, values):
        if "properties" not in part:
            rows.append(_row(name, part, value, required=name in schema["required"]))
    rows.append([cell.strip() for cell in _OWN.split("|")])
    head = ("field", "type", "default", "meaning")
    return page(
        "Task file",
        _INTRODUCTION,
        table(head, rows),
    )


def _row(name: str, part: Schema, value: object, *, required: bool) -> list[str]:
    default = "the file's stem" if name == "name" else default_words(value, required=required)
    return [code(name), type_words(part), default, part["description"]]
