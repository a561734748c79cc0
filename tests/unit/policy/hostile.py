"""Conditions and texts made to take all the time or all the memory there is, and conditions of any shape."""

from typing import Any

from hypothesis import strategies as st

from claudomator_py.policy.facts import sample

MEGABYTE = ("a b/c.py " * 120_000)[:1_000_000]


def facts(**fields: Any) -> dict[str, Any]:
    """The values of a task that says this."""
    values = sample().values
    values["task"] |= fields
    return values


def large() -> dict[str, Any]:
    """The values of a task that says as much as any can."""
    paths = [f"src/folder{number % 9}/file{number}.py" for number in range(200)]
    tags = [f"{number}".ljust(4_000, "t") for number in range(50)]
    return facts(text=MEGABYTE, paths=paths, tags=tags, allowed_tools=[f"Tool{number}" * 99 for number in range(500)])


def doubled(value: str, times: int, by: str = "t + t") -> str:
    """A list of one value, doubled as often."""
    return f"[{value}]" + f".map(t, {by})" * times


MEMORY = [
    f"size({doubled('task.text', 12)}) > 0",
    f"{doubled('task.paths', 13)}.exists(t, t == [])",
    f"size({doubled('task.text', 12, '[t, t, string(t + t)][2]')}) > 0",
    f"size({doubled('bytes(task.text)', 12)}) > 0",
    f"{doubled('task.text', 12)}.exists(t, t == task.name)",
    f"""{doubled('task["text"]', 12)}.exists(t, t == task.name)""",
]
"""Each with more memory for a task that says much than there may be; that may take more time than it may first."""

TIME = [
    "task.paths.all(p, task.paths.all(q, !task.text.contains(p + q)))",
    "task.paths.all(p, task.tags.all(q, !task.text.matches(p + '.*' + q)))",
    "task.tags.all(t, task.paths.all(p, task.paths.size() == size(task.text) || true))",
    f"task.paths.all(p, [task].all(u, {' && '.join(['size(u.text) > size(p)'] * 60)}))",
]
"""Each with more time."""

NEAR = [
    f"({'+'.join(['task.text'] * 150)}).contains('zzz')",
    "task.paths.all(p, string(task.text).contains(p) || !bytes(task.text + task.text).size() > 3)",
    "[task].all(u, u.paths.all(p, !u.text.contains(p + p)))",
]
"""Those of which the machine decides."""

READ = [
    f"{doubled(repr('x'), 40)}.exists(t, t == 'a')",
    f"size({doubled('[1]', 40)}) > 3",
    rf"""r"\" == "a" || size({doubled('"x"', 40)}) > 0 || r"\" == "x" """,
    f"size({doubled('b' + repr('x'), 40)}) > 3 && '//' != 'x'",
]
"""Those that cost it for any task."""

_PLACES = st.sampled_from(
    [
        *("task.text", "task.name", "task.paths", "task.tags", "task", 'task["text"]', "limits.day.usd", "task.risk"),
        *('"x"', r'r"\"', "b'y'", "'''a'b'''", "1", "2.5", "0u", "true", "[]", "{}", "-1", "null", "t", "p"),
        *(r'"\\w{90}"', "'.*a.*'"),
    ]
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    walks = st.sampled_from(["all", "exists", "exists_one", "map", "filter"])
    calls = st.sampled_from(["size", "string", "bytes", "int", "double", "timestamp", "duration", "has", "zip"])
    methods = st.sampled_from(["matches", "contains", "startsWith", "endsWith", "size", "getHours"])
    signs = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"])
    return st.one_of(
        st.builds("{} {} {}".format, inner, signs, inner),
        st.builds("({} {} {})".format, inner, signs, inner),
        st.builds("{}.{}({}, {})".format, inner, walks, st.sampled_from(["t", "p", "task"]), inner),
        st.builds("{}({})".format, calls, inner),
        st.builds("{}.{}({})".format, inner, methods, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("[{}]{}".format, inner, st.integers(1, 30).map(lambda times: ".map(t, t + t)" * times)),
        st.builds("{} ? {} : {}".format, inner, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("{} // {}\n".format, inner, inner),
    )


CONDITIONS = st.recursive(_PLACES, _larger, max_leaves=12)
"""Of the language's grammar, true or not, and some that are next to it."""
