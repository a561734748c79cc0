"""Precompiled statements for frequent queries.

SQLAlchemy's ``Connection.execute`` looks up, binds and wraps each time, which takes several times as long as the
database's answer. Here a statement is compiled once per dialect, with its types; after that only values go to the
driver and rows come back. Rare or composed queries use ``Connection.execute``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from sqlalchemy import BindParameter, Connection, Delete, Dialect, Insert, Select, Update
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BinaryExpression
from sqlalchemy.sql.operators import in_op, not_in_op
from sqlalchemy.sql.visitors import cloned_traverse, iterate

from claudomator_py.store.connections import driver_of
from claudomator_py.store.tables import columns

_EXACT = 4
_MAX_ROUNDED = 1024
"""The lengths of lists between these are rounded up to a power of two."""
MAX_FORMS = 256
"""Cached texts for different lengths of lists; beyond that the cache is cleared."""

Row = tuple[Any, ...]
_Clause = Select[Any] | Insert | Update | Delete
_Process = Callable[[Any], Any]
T = TypeVar("T", bound=columns.Row)


class _Bound(NamedTuple):
    """A parameter. name: its name for callers. place: its index in a list. process: converts it for the driver.
    otherwise: its value if none is given."""

    name: str
    place: int | None
    process: _Process | None
    otherwise: Any

    @property
    def key(self) -> Any:
        """The key of its value among those of all parameters."""
        return self.name if self.place is None else (self.name, self.place)


class Statement:
    """A statement with named parameters (``bindparam``). An INSERT or UPDATE writes the columns that are given. A list
    (``expanding``) cannot be used for both IN and NOT IN. Raises TypeError for such a statement."""

    def __init__(self, clause: _Clause) -> None:
        # Without returning ids, for which INSERT would differ between databases.
        self._clause = clause.inline() if isinstance(clause, Insert) else clause
        self._compiled: dict[tuple[str, tuple[str, ...]], _Compiled] = {}

    def rows(self, connection: Connection, **given: Any) -> list[Row]:
        """Return all selected rows. Raises DBAPIError, like all methods."""
        dialect, names = connection.dialect, tuple(given)
        compiled = self._compiled.get((dialect.name, names)) or self._compiled_for(dialect, names)
        form = compiled.only or compiled.form(given)
        try:
            cursor = driver_of(connection).execute(form.text, form.parameters(given))
            rows: list[Row] = cursor.fetchall()
        except Exception as error:
            _raise(connection, error, form.text)
        process = compiled.results
        if process is None:
            process = compiled.find_results(cursor)
        return [_processed(row, process) for row in rows] if process else rows

    def row(self, connection: Connection, **given: Any) -> Row | None:
        """Return the first selected row, or None."""
        rows = self.rows(connection, **given)
        return rows[0] if rows else None

    def values(self, connection: Connection, **given: Any) -> list[Any]:
        """Return the first column of all selected rows."""
        return [row[0] for row in self.rows(connection, **given)]

    def value(self, connection: Connection, **given: Any) -> Any:
        """Return the first column of the first row, or None if there is no row."""
        row = self.row(connection, **given)
        return None if row is None else row[0]

    def run(self, connection: Connection, **given: Any) -> int:
        """Run the statement, and return the number of changed rows."""
        dialect, names = connection.dialect, tuple(given)
        compiled = self._compiled.get((dialect.name, names)) or self._compiled_for(dialect, names)
        form = compiled.only or compiled.form(given)
        try:
            number: int = driver_of(connection).execute(form.text, form.parameters(given)).rowcount
        except Exception as error:
            _raise(connection, error, form.text)
        return number

    def run_all(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run the statement for each mapping; all have the same parameters, and no lists."""
        if not rows:
            return
        form = self._compiled_for(connection.dialect, tuple(rows[0])).form({})
        parameters = form.parameters
        driver = driver_of(connection)
        try:
            if len(rows) == 1:
                driver.execute(form.text, parameters(rows[0]))
            else:
                driver.cursor().executemany(form.text, [parameters(row) for row in rows])
        except Exception as error:
            _raise(connection, error, form.text)

    def _compiled_for(self, dialect: Dialect, names: tuple[str, ...]) -> "_Compiled":
        key = (dialect.name, names)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = _Compiled(self._clause, dialect, names)
        return compiled


class Selection(Statement, Generic[T]):
    """A statement that selects all columns of a table."""

    def __init__(self, model: type[T], clause: Select[Any]) -> None:
        super().__init__(clause)
        self._load = model.load

    def all(self, connection: Connection, **given: Any) -> list[T]:
        """Return all selected rows. Raises DBAPIError, as does ``first``."""
        load = self._load
        return [load(row) for row in self.rows(connection, **given)]

    def first(self, connection: Connection, **given: Any) -> T | None:
        """Return the first selected row, or None."""
        row = self.row(connection, **given)
        return None if row is None else self._load(row)


class _Form:
    """The SQL text for certain lengths of lists, and its parameters."""

    def __init__(
        self, text: str, bound: Sequence[tuple[str, _Bound]], given: Collection[str], *, positional: bool
    ) -> None:
        """bound: parameters in the text's order, with their names there. given: names that callers pass values for."""
        self.text = text
        self._names = None if positional else [name for name, _ in bound]
        # Most values need no conversion, and one call picks them all.
        pick = _picker([parameter.key for _, parameter in bound])
        processed = [
            (at, parameter.process) for at, (_, parameter) in enumerate(bound) if parameter.process is not None
        ]
        self._process = [(at, process, process(None) is None) for at, process in processed]
        self._otherwise = {parameter.key: parameter.otherwise for _, parameter in bound if parameter.name not in given}
        lists: dict[str, set[Any]] = {}
        for _, parameter in bound:
            if parameter.place is not None and parameter.name in given:
                lists.setdefault(parameter.name, set()).add(parameter.key)
        self._lists = [(name, sorted(keys)) for name, keys in lists.items()]
        self._pick = pick
        self.parameters: Callable[[Mapping[str, Any]], Any] = self._parameters
        """Converts a mapping of values to the driver's parameters."""
        if positional and not (self._process or self._lists):
            otherwise = self._otherwise
            self.parameters = (lambda given: pick({**otherwise, **given})) if otherwise else pick

    def _parameters(self, given: Mapping[str, Any]) -> tuple[Any, ...] | dict[str, Any]:
        if self._otherwise or self._lists:
            values: dict[Any, Any] = {**self._otherwise, **given}
            for name, keys in self._lists:
                values.update(zip(keys, _filled(given[name], len(keys)), strict=True))
            given = values
        picked = self._pick(given)
        if self._process:
            picked = list(picked)
            for at, process, keeps_none in self._process:
                if picked[at] is not None or not keeps_none:
                    picked[at] = process(picked[at])
        return tuple(picked) if self._names is None else dict(zip(self._names, picked, strict=True))


def _rounded(length: int) -> int:
    """Return the length to compile for. Compiling takes long for long lists, and in bursts each list has another
    length."""
    return length if length > _MAX_ROUNDED else 1 << (length - 1).bit_length()


def _filled(values: Sequence[Any], length: int) -> Sequence[Any]:
    """Pad the list by repeating its last value, which is harmless for IN and NOT IN."""
    return values if len(values) == length else [*values, *[values[-1]] * (length - len(values))]


def _picker(keys: Sequence[Any]) -> Callable[[Mapping[Any, Any]], Sequence[Any]]:
    """Return a function that takes the values of these keys from a mapping, in order."""
    if len(keys) > 1:
        return itemgetter(*keys)
    if not keys:
        return lambda _: ()
    (key,) = keys
    return lambda values: (values[key],)


class _Compiled:
    """A statement compiled for a dialect."""

    def __init__(self, clause: _Clause, dialect: Dialect, names: tuple[str, ...]) -> None:
        clause = _with_literals(clause)
        self._dialect = dialect
        self._names = frozenset(names)
        self._columns = list(clause.selected_columns) if isinstance(clause, Select) else []
        written = None if isinstance(clause, Select) else list(names)
        self._compiler: SQLCompiler = clause.compile(dialect=dialect, column_keys=written)
        if missing := self._missing(names):
            raise TypeError(f"{', '.join(missing)} not given for {self._compiler}")
        self._lists = tuple(
            name for name in names if name in self._compiler.binds and self._compiler.binds[name].expanding
        )
        if self._lists and (twofold := _in_and_not_in(clause)):
            raise TypeError(f"{', '.join(twofold)} is given to IN and to NOT IN; use two names")
        self._forms: dict[tuple[int, ...], _Form] = {}
        self.only = None if self._lists else self.form({})
        """The only form, if there are no lists."""
        if self.only is not None:
            del self._compiler  # several times as large as all that is needed from now on
        self.results: list[tuple[int, _Process]] | None = None
        """Conversions of the driver's values, by index of the column; None: not known yet, see ``find_results``."""

    def form(self, given: Mapping[str, Any]) -> _Form:
        """Return the form for lists of at least these lengths."""
        lengths = tuple([n if (n := len(given[name])) <= _EXACT else _rounded(n) for name in self._lists])
        form = self._forms.get(lengths)
        if form is None:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            form = self._forms[lengths] = self._make(
                {name: _filled(given[name], length) for name, length in zip(self._lists, lengths, strict=True)}
            )
        return form

    def find_results(self, cursor: DBAPICursor) -> list[tuple[int, _Process]]:
        """Determine and keep the conversions of results. cursor: of any execution."""
        steps: list[tuple[int, _Process]] = []
        for index, (column, described) in enumerate(zip(self._columns, cursor.description, strict=True)):
            process = column.type.dialect_impl(self._dialect).result_processor(self._dialect, described[1])
            if process is not None:
                steps.append((index, process))
        self.results, self._columns = steps, []
        return steps

    def _missing(self, names: tuple[str, ...]) -> list[str]:
        """Return parameters without a value, including columns whose defaults SQLAlchemy would have to compute."""
        required = {name for name, bind in self._compiler.binds.items() if bind.required}
        made = {column.key for column in self._compiler.prefetch}
        return sorted((required | made) - set(names))

    def _make(self, lists: Mapping[str, Sequence[Any]]) -> _Form:
        compiler = self._compiler
        state = compiler.construct_expanded_state({**compiler.params, **lists})
        within = {
            name: (of, place) for of, names in state.parameter_expansion.items() for place, name in enumerate(names)
        }
        names = state.positiontup if compiler.positional else list(state.parameters)
        bound = []
        for name in names or ():
            of, place = within.get(name, (name, None))
            bind = compiler.binds[of]
            given: Any = bind.value
            otherwise = given if place is None or of in self._names else given[place]
            process = bind.type.dialect_impl(self._dialect).bind_processor(self._dialect)
            bound.append((name, _Bound(of, place, process, otherwise)))
        return _Form(state.statement, bound, self._names, positional=compiler.positional)


def _with_literals(clause: _Clause) -> _Clause:
    """Return the statement with its constants as part of the text.

    SQLite plans a statement anew at each execution if an index has a condition on a column that is compared with a
    parameter: that takes 70 to 200 µs, the statement itself 10.
    """

    def write(bind: BindParameter[Any]) -> None:
        values = bind.value if isinstance(bind.value, list | tuple) else [bind.value]
        if bind.unique and not bind.required and all(isinstance(value, str | int) for value in values):
            bind.literal_execute = True

    written: _Clause = cloned_traverse(clause, {}, {"bindparam": write})
    return written


def _in_and_not_in(clause: _Clause) -> list[str]:
    """Return lists used in both. SQLAlchemy renders an empty list the same for all uses of a name, although it depends
    on the operator: on PostgreSQL, ``IN ()`` would be true."""
    names: dict[Any, set[str]] = {in_op: set(), not_in_op: set()}
    for part in iterate(clause):
        if isinstance(part, BinaryExpression) and part.operator in names and isinstance(part.right, BindParameter):
            names[part.operator].add(part.right.key)
    return sorted(names[in_op] & names[not_in_op])


def _processed(row: Row, process: Sequence[tuple[int, _Process]]) -> Row:
    values = list(row)
    for index, made in process:
        if values[index] is not None:
            values[index] = made(values[index])
    return tuple(values)


def _raise(connection: Connection, error: Exception, text: str) -> NoReturn:
    """Raise a driver's error as ``Connection.execute`` would."""
    dialect = connection.dialect
    driver: Any = dialect.dbapi
    if not isinstance(error, driver.Error):
        raise error
    gone = dialect.is_disconnect(error, driver_of(connection), None)
    if gone:
        connection.invalidate(error)
    raise DBAPIError.instance(text, None, error, driver.Error, connection_invalidated=gone, dialect=dialect) from error
