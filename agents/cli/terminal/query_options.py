"""The options of a query, declared from what may be asked of a collection."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from ldpstream.agents.config.query.settings import SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])


def query_options(command: Command) -> Command:
    """Add the options of a query, collected as keywords; `query_parameters` reads them."""
    for setting in reversed(SETTINGS):
        command = _option(setting)(command)
    return command


def _option(setting: Setting) -> Callable[[Command], Command]:
    name, schema = f"--{setting.word}", setting.schema
    if schema["type"] == "boolean":
        return click.option(name, is_flag=True, default=None, help=f"{setting.help}.")
    names = schema.get("enum")
    return click.option(
        name,
        type=click.Choice(names) if isinstance(names, list) else None,
        metavar=setting.form,
        multiple=setting.repeated,
        help=f"{setting.help}{'; repeatable' if setting.repeated else ''}.",
    )


def query_parameters(written: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the texts of the options that were given, by the name they have in a URL."""
    return {
        word: value if isinstance(value, tuple) else ("true" if value is True else value,)
        for word, value in written.items()
        if value is not None and value != ()
    }
