"""Errors that say what is wrong and where, and never repeat a private value."""


class SpecError(ValueError):
    """A configuration value is invalid: `path` names it, `expected` says what to write instead.

    >>> str(SpecError("collection.checkins.epsilon", "a finite number above 0, got inf"))
    'collection.checkins.epsilon: expected a finite number above 0, got inf'
    """

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path}: expected {expected}")
        self.path = path
        self.expected = expected

    def within(self, path: str) -> "SpecError":
        """Return the same error with `path` in front of its own path.

        >>> str(SpecError("epsilon", "a number").within("collection.checkins"))
        'collection.checkins.epsilon: expected a number'
        """
        return SpecError(f"{path}.{self.path}", self.expected)


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
        self.detail = detail
