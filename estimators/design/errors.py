"""The error of designs."""


class DesignError(ValueError):
    """There is no design; the message says what did not converge or what is impossible."""
