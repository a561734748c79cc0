"""Lazy versions of what the standard library builds at declaration time, and the data beside the code.

``dataclass`` compiles six functions per class, which takes 0.6 ms. A command that talks to a daemon declares a hundred
classes, the daemon three hundred, and each instantiates a few dozen. ``regex`` is ``re.compile``: the daemon declares
280 expressions, some of which take 10 ms. Type checkers see the standard functions.
"""

import dataclasses
import re
from functools import cache
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "regex", "toml_data"]


@cache
def toml_data(package: str, name: str) -> dict[str, Any]:
    """Return a TOML file of that package, which is read once. Nobody may change it."""
    import pkgutil  # late: a fast start
    import tomllib

    return tomllib.loads((pkgutil.get_data(package, name) or b"").decode())


if TYPE_CHECKING:
    from dataclasses import dataclass
    from re import compile as regex
else:

    class regex:  # noqa: N801 - callers use it as a function
        """A regular expression, compiled on first use of one of its attributes; see ``re.compile``."""

        def __init__(self, *given, **named):
            self._made = lambda: re.compile(*given, **named)

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            compiled = self._made()
            self._made = lambda: compiled
            self.__dict__[name] = method = getattr(compiled, name)
            return method

    _MADE_LATER = ("__init__", "__repr__", "__eq__", "__hash__")

    def dataclass(cls=None, /, **options):
        """Declare the class a dataclass; see ``dataclasses.dataclass``. Only frozen ones are built lazily, and only
        type checkers refuse to assign to their fields: a class that refuses it itself takes four times as long to
        instantiate."""
        if cls is None:
            return lambda declared: dataclass(declared, **options)
        has_a_base = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        if not options.get("frozen") or options.keys() - {"frozen", "slots", "kw_only"} or has_a_base:
            return dataclasses.dataclass(cls, **options)
        return _declared(cls, options)

    def _declared(cls, options):
        later = [name for name in _MADE_LATER if name not in cls.__dict__]
        made = dataclasses.dataclass(cls, **{**options, "frozen": False}, init=False, repr=False, eq=False)
        made.__dataclass_params__.frozen = True
        for name in later:
            setattr(made, name, _stub(made, name, later))
        return made

    def _stub(made, name, later):
        def method(self, *args, **options):
            _complete(made, later)
            return getattr(made, name)(self, *args, **options)

        return method

    def _complete(made, later):
        more = {"__post_init__": made.__post_init__} if hasattr(made, "__post_init__") else {}
        fields = [(field.name, field.type, field) for field in dataclasses.fields(made)]
        same = dataclasses.make_dataclass(made.__name__, fields, namespace=more, unsafe_hash=True)
        for name in later:
            setattr(made, name, getattr(same, name))
