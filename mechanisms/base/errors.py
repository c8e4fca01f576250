"""Errors that say what is wrong and where, and never repeat a private value."""

from collections.abc import Iterator
from contextlib import contextmanager


class SpecError(ValueError):
    """A configuration value is invalid: `path` names it, `expected` says what to write instead.

    All that reads a part of a spec may raise it.

    >>> str(SpecError("collection.checkins.epsilon", "a finite number above 0, got inf"))
    'collection.checkins.epsilon: expected a finite number above 0, got inf'
    """

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path}: expected {expected}")
        self.path = path
        self.expected = expected


class QueryError(ValueError):
    """A query that the collection cannot answer.

    `name` is the parameter or option ("range", "quantile", "top", ...), `entry` the user's name for
    one of several queries; the message is `NAME: expected ...`.
    """

    def __init__(self, name: str, expected: str, *, entry: str | None = None) -> None:
        super().__init__(f"{name}: expected {expected}")
        self.name = name
        self.expected = expected
        self.entry = entry


@contextmanager
def within(path: str) -> Iterator[None]:
    """Put `path` in front of the path of a `SpecError` that is raised inside.

    >>> with within("collection.checkins"):
    ...     raise SpecError("epsilon", "a number")
    Traceback (most recent call last):
    ...
    ldpstream.mechanisms.base.errors.SpecError: collection.checkins.epsilon: expected a number
    """
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{path}.{error.path}", error.expected) from None


class ValueOutsideDomainError(ValueError):
    """A value is not in the domain.

    `position` is its 0-based place in the input and `expected` describes the domain. The value
    itself is private, so that it appears in no attribute and no message.
    """

    def __init__(self, position: int, expected: str) -> None:
        super().__init__(f"value at position {position}: expected {expected}")
        self.position = position
        self.expected = expected


class FrameError(ValueError):
    """A frame cannot be read: `reason` is "undecodable" or "fingerprint"."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
