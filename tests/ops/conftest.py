"""The broker that broker tests share."""

from tests.broker.conftest import running, start

__all__ = ["running", "start"]
