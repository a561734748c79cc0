"""A value that is replaced as a whole while others use it, such as what follows from the configuration."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Current(Generic[T]):
    """Call it for the present value. Whoever holds one keeps it; nobody ever sees half of a change."""

    def __init__(self, value: T) -> None:
        self._value = value

    def __call__(self) -> T:
        return self._value

    def replace(self, value: T) -> T:
        """Put another in its place; the former one."""
        former, self._value = self._value, value
        return former
