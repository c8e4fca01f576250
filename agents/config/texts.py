"""Texts that tables of a configuration file hold: names, labels, brokers and time zones.

Pydantic's own errors of a union speak of Python's types; these say what to write.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from ldpstream.agents.config.errors import refused
from ldpstream.agents.config.hosts import BROKERS_EXPECTED, are_brokers
from ldpstream.agents.state.calendar import time_zone, zones_are_known

_TEXT_LENGTH: Final = 100


def _names(value: object) -> object:
    """Refuse anything but a name, or a table of names: errors of a union name Python's types."""
    names = value.values() if isinstance(value, Mapping) else [value]
    for name in names:
        if not isinstance(name, str) or not 1 <= len(name) <= _TEXT_LENGTH:
            raise refused(f"a text of 1 to {_TEXT_LENGTH} characters", name)
    return value


def _label(value: object) -> object:
    """Refuse anything but a label."""
    if not isinstance(value, str | int):
        raise refused("a label, a text or a whole number", value)
    return value


def _brokers(value: str) -> str:
    """Refuse anything but a list of `host` or `host:port`; without a port it is 9092."""
    if not are_brokers(value):
        raise refused(BROKERS_EXPECTED, value)
    return value


def _time_zone(value: str) -> str:
    """Refuse anything but the name of a time zone that this machine knows."""
    try:
        time_zone(value)
    except ValueError:
        zones = (
            ""
            if zones_are_known()
            else (
                ", on a machine with the time zone database: here it is missing, and the package "
                "tzdata of the system or of PyPI brings it"
            )
        )
        raise refused(f'a time zone such as "Europe/Berlin" or "UTC"{zones}', value) from None
    return value


Text = Annotated[str, Field(min_length=1, max_length=_TEXT_LENGTH)]
Names = Annotated[str | dict[str, str], BeforeValidator(_names)]
Label = Annotated[str | int, BeforeValidator(_label)]
Brokers = Annotated[str, AfterValidator(_brokers)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
