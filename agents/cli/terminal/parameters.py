"""Types of options that are numbers, and groups of options that a command gets as one object.

What reads numbers is imported once there is one: `--help` does not wait for fractions.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def group_options(
    name: str, make: Callable[..., object], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Add options, passed on as one keyword `name`: what `make` returns for their values.

    The parameters of `make` have the options' names.
    """

    def add(command: Command) -> Command:
        @wraps(command)
        def call(*args: Any, **values: Any) -> Any:
            group = {parameter: values.pop(parameter) for parameter in signature(make).parameters}
            return command(*args, **values, **{name: make(**group)})

        for option in reversed(options):
            call = option(call)
        return cast("Command", call)

    return add


class Whole(click.IntRange):
    """A whole number between two limits; not Python's other spellings of one, such as `1_0`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse the text."""
        from ldpstream.mechanisms.base.numbers import read_whole

        if isinstance(value, str):
            try:
                value = read_whole(value)
            except ValueError:
                self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return super().convert(value, param, ctx)


class Real(click.FloatRange):
    """A finite number between two limits; `nan`, which no limit excludes, is no number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse the text."""
        from ldpstream.mechanisms.base.numbers import read_number

        if isinstance(value, str):
            try:
                value = read_number(value)
            except ValueError:
                self.fail(f"{value!r} is not a valid float.", param, ctx)
        return super().convert(value, param, ctx)
