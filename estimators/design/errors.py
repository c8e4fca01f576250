"""The error of designs."""


class DesignError(ValueError):
    """No design: the message says what did not converge or what cannot be."""
