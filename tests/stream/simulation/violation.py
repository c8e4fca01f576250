"""The error that a run of the simulation fails with."""


class ViolationError(AssertionError):
    """An invariant does not hold."""


def demand(holds: bool, message: str) -> None:
    if not holds:
        raise ViolationError(message)
