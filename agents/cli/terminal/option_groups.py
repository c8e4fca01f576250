"""Groups of options that a command receives as one object."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

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
